import { BarList } from "../../charts/BarList.tsx";
import { useHues } from "../../live/useHues.ts";
import { useQueueLabels } from "../../live/useQueueLabels.ts";
import { NO_HUE } from "../../model/hues.ts";
import type { Cluster, QueueGpu } from "../../model/rows.ts";
import { gpus } from "../../model/units.ts";
import { hueColor } from "../../ui/hueStyle.ts";
import { Panel } from "../../ui/Panel.tsx";
import { QueueMark } from "../../ui/QueueMark.tsx";
import { Empty } from "../../ui/States.tsx";

/** Who is below the fair share and has work waiting, and who runs on more than its quota. */
export function QueueBalance({ cluster }: { cluster: Cluster }) {
  return (
    <>
      <Panel title="Starved queues" note="below fair share with work waiting">
        {cluster.starved.length === 0 ? (
          <Empty title="No queue is starved" />
        ) : (
          <Balance
            entries={cluster.starved}
            what="GPUs below fair share"
            sign="−"
            file="starved.csv"
          />
        )}
      </Panel>
      <Panel title="Borrowing queues" note="above quota">
        {cluster.borrowing.length === 0 ? (
          <Empty title="No queue borrows" />
        ) : (
          <Balance
            entries={cluster.borrowing}
            what="GPUs above quota"
            sign="+"
            file="borrowing.csv"
          />
        )}
      </Panel>
    </>
  );
}

type Props = { entries: readonly QueueGpu[]; what: string; sign: string; file: string };

function Balance({ entries, what, sign, file }: Props) {
  const hues = useHues();
  const label = useQueueLabels();
  const bars = entries.map(({ queue, gpu }) => ({
    key: queue,
    label: (
      <>
        <QueueMark hue={hues.get(queue)} />
        {label(queue)}
      </>
    ),
    value: gpu,
    shown: `${sign}${gpus(gpu)}`,
    to: `/queues?queue=${encodeURIComponent(queue)}`,
    color: hueColor(hues.get(queue) ?? NO_HUE),
  }));
  const first = entries[0];
  const summary =
    first === undefined ? what : `${what}; most: ${first.queue} with ${gpus(first.gpu)}`;
  return <BarList summary={summary} columns={["Queue", what]} file={file} bars={bars} />;
}

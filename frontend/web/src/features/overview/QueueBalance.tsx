import { BarList } from "../../charts/BarList.tsx";
import { BALANCE } from "../../i18n/overview.ts";
import { useHues } from "../../live/useHues.ts";
import { useQueueLabels } from "../../live/useQueueLabels.ts";
import { NO_HUE } from "../../model/hues.ts";
import type { Cluster, QueueGpu } from "../../model/rows.ts";
import { hueColor } from "../../ui/hueStyle.ts";
import { Panel } from "../../ui/Panel.tsx";
import { QueueMark } from "../../ui/QueueMark.tsx";
import { Empty } from "../../ui/States.tsx";

/** The queues below their fair share with pending workloads, and the queues above their quota. */
export function QueueBalance({ cluster }: { cluster: Cluster }) {
  return (
    <>
      <Panel title={BALANCE.starved} note={BALANCE.starvedNote}>
        {cluster.starved.length === 0 ? (
          <Empty title={BALANCE.starvedEmpty} />
        ) : (
          <Balance
            entries={cluster.starved}
            column={BALANCE.starvedColumn}
            sign="−"
            file="starved.csv"
          />
        )}
      </Panel>
      <Panel title={BALANCE.borrowing} note={BALANCE.borrowingNote}>
        {cluster.borrowing.length === 0 ? (
          <Empty title={BALANCE.borrowingEmpty} />
        ) : (
          <Balance
            entries={cluster.borrowing}
            column={BALANCE.borrowingColumn}
            sign="+"
            file="borrowing.csv"
          />
        )}
      </Panel>
    </>
  );
}

type Props = { entries: readonly QueueGpu[]; column: string; sign: "−" | "+"; file: string };

function Balance({ entries, column, sign, file }: Props) {
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
    shown: BALANCE.amount(sign, gpu),
    to: `/queues?queue=${encodeURIComponent(queue)}`,
    color: hueColor(hues.get(queue) ?? NO_HUE),
  }));
  const first = entries[0];
  const summary = first === undefined ? column : BALANCE.summary(column, first.queue, first.gpu);
  return <BarList summary={summary} columns={[BALANCE.queue, column]} file={file} bars={bars} />;
}

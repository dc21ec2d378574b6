import styles2 from "../../charts/Chart.module.css";
import { useTopic } from "../../live/react.tsx";
import { useHues } from "../../live/useHues.ts";
import type { Cluster, Queue } from "../../model/rows.ts";
import { gpus } from "../../model/units.ts";
import { hueStyle } from "../../ui/hueStyle.ts";
import { Panel } from "../../ui/Panel.tsx";
import { QueueMark } from "../../ui/QueueMark.tsx";
import styles from "./Overview.module.css";

const SHOWN = 8;

/** The one number people ask for first: how many GPUs are in use, and by whom. */
export function GpuTile({ cluster }: { cluster: Cluster }) {
  const { rows } = useTopic("queues");
  const hues = useHues();
  const { total, allocated, free, unusable } = cluster.gpus;
  const users = [...rows.values()]
    .filter((queue) => hues.has(queue.name) && queue.allocated.gpu > 0)
    .sort((a, b) => b.allocated.gpu - a.allocated.gpu);
  const width = (amount: number) => `${(100 * amount) / Math.max(total, 1)}%`;
  return (
    <Panel title="GPUs">
      <div className={styles.hero}>
        <div className={styles.big}>
          {gpus(allocated)} <small>of {gpus(total)} allocated</small>
        </div>
        <div>
          <b>{gpus(free)}</b> free{unusable > 0 && <> · {gpus(unusable)} unusable</>}
        </div>
      </div>
      <div className={styles2.stack} role="img" aria-label={stackWords(users, cluster)}>
        {users.map((queue) => (
          <span
            key={queue.name}
            title={`${queue.displayName || queue.name}: ${gpus(queue.allocated.gpu)}`}
            style={{ width: width(queue.allocated.gpu), ...hueStyle(hues.get(queue.name)) }}
          />
        ))}
      </div>
      <ul className={styles.legend}>
        {users.slice(0, SHOWN).map((queue) => (
          <li key={queue.name}>
            <QueueMark hue={hues.get(queue.name)} />
            {queue.displayName || queue.name} <b>{gpus(queue.allocated.gpu)}</b>
          </li>
        ))}
        {users.length > SHOWN && <li>and {users.length - SHOWN} more</li>}
      </ul>
    </Panel>
  );
}

function stackWords(users: readonly Queue[], { gpus: { total, allocated } }: Cluster): string {
  const parts = users.map((queue) => `${queue.name} ${gpus(queue.allocated.gpu)}`);
  return `${gpus(allocated)} of ${gpus(total)} GPUs allocated. ${parts.join(", ")}`;
}

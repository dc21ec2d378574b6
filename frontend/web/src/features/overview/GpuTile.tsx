import chartStyles from "../../charts/Chart.module.css";
import { gpus } from "../../i18n/numbers.ts";
import { GPU_TILE } from "../../i18n/overview.ts";
import { useTopic } from "../../live/react.tsx";
import { useHues } from "../../live/useHues.ts";
import type { Cluster } from "../../model/rows.ts";
import { hueStyle } from "../../ui/hueStyle.ts";
import { Panel } from "../../ui/Panel.tsx";
import { QueueMark } from "../../ui/QueueMark.tsx";
import styles from "./Overview.module.css";

const NAMED = 8;
/** More parts than this would be thinner than a pixel; the others share one. */
const MAX_PARTS = 24;

/** How many GPUs are in use, and by which queues. */
export function GpuTile({ cluster }: { cluster: Cluster }) {
  const { rows } = useTopic("queues");
  const hues = useHues();
  const { total, allocated, free, unusable } = cluster.gpus;
  const users = [...rows.values()]
    .filter((queue) => hues.has(queue.name) && queue.allocated.gpu > 0)
    .sort((a, b) => b.allocated.gpu - a.allocated.gpu);
  const parts = users.slice(0, MAX_PARTS);
  const others = users.slice(MAX_PARTS);
  const othersGpus = others.reduce((sum, queue) => sum + queue.allocated.gpu, 0);
  const width = (amount: number) => `${(100 * amount) / Math.max(total, 1)}%`;
  return (
    <Panel title={GPU_TILE.title}>
      <div className={styles.hero}>
        <div className={styles.big}>
          {gpus(allocated)} <small>{GPU_TILE.ofTotal(total)}</small>
        </div>
        <div>
          <b>{gpus(free)}</b> {GPU_TILE.free}
          {unusable > 0 && GPU_TILE.unusable(unusable)}
        </div>
      </div>
      <div
        className={chartStyles.stack}
        role="img"
        aria-label={GPU_TILE.barText(
          allocated,
          total,
          users.slice(0, NAMED).map((queue) => [queue.name, queue.allocated.gpu]),
          users.length - NAMED,
        )}
      >
        {parts.map((queue) => (
          <span
            key={queue.name}
            title={GPU_TILE.queue(queue.displayName || queue.name, queue.allocated.gpu)}
            style={{ width: width(queue.allocated.gpu), ...hueStyle(hues.get(queue.name)) }}
          />
        ))}
        {others.length > 0 && (
          <span
            className={styles.others}
            title={GPU_TILE.queue(GPU_TILE.others(others.length), othersGpus)}
            style={{ width: width(othersGpus) }}
          />
        )}
      </div>
      <ul className={styles.legend}>
        {users.slice(0, NAMED).map((queue) => (
          <li key={queue.name}>
            <QueueMark hue={hues.get(queue.name)} />
            {queue.displayName || queue.name} <b>{gpus(queue.allocated.gpu)}</b>
          </li>
        ))}
        {users.length > NAMED && <li>{GPU_TILE.more(users.length - NAMED)}</li>}
      </ul>
    </Panel>
  );
}

import { FAILED_BINDS } from "../../i18n/binds.ts";
import { NONE } from "../../i18n/ui.ts";
import type { PodRow } from "../../model/rows.ts";
import { ColumnHeads } from "../../ui/ColumnHeads.tsx";
import { useNow } from "../../ui/now.ts";
import { Panel } from "../../ui/Panel.tsx";
import styles from "./Workloads.module.css";

/** How often the pods of a workload could not be bound, and when each is tried next; nothing without failures. */
export function FailedBinds({ pods }: { pods: readonly PodRow[] }) {
  const now = useNow();
  const failed = pods.filter((pod) => pod.failedBinds != null);
  if (failed.length === 0) return null;
  return (
    <Panel title={FAILED_BINDS.title} note={String(failed.length)} flush>
      <div className={styles.scroll}>
        <table className={styles.table}>
          <ColumnHeads labels={FAILED_BINDS.columns} />
          <tbody>
            {failed.map(({ name, failedBinds }) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td>{failedBinds?.count}</td>
                <td>{failedBinds?.nodes.at(-1) ?? NONE}</td>
                <td>{nextAttempt(failedBinds?.nextAt ?? "", now)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

function nextAttempt(nextAt: string, now: number): string {
  return Date.parse(nextAt) > now ? FAILED_BINDS.nextAttempt(nextAt) : FAILED_BINDS.due;
}

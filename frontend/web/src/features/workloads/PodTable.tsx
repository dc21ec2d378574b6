import { gpus } from "../../i18n/numbers.ts";
import { reasonText } from "../../i18n/reasons.ts";
import { NONE } from "../../i18n/ui.ts";
import { POD_TABLE } from "../../i18n/workloads.ts";
import type { PodRow } from "../../model/rows.ts";
import { ColumnHeads } from "../../ui/ColumnHeads.tsx";
import { Elapsed } from "../../ui/Elapsed.tsx";
import { NodeLink } from "../../ui/NodeLink.tsx";
import { Panel } from "../../ui/Panel.tsx";
import { ScrollRegion } from "../../ui/ScrollRegion.tsx";
import { StateBadge } from "../../ui/StateBadge.tsx";
import { Empty } from "../../ui/States.tsx";
import styles from "./Workloads.module.css";

export function PodTable({ pods }: { pods: readonly PodRow[] }) {
  if (pods.length === 0) {
    return (
      <Panel title={POD_TABLE.title}>
        <Empty title={POD_TABLE.emptyTitle}>{POD_TABLE.empty}</Empty>
      </Panel>
    );
  }
  return (
    <Panel title={POD_TABLE.title} note={String(pods.length)} flush>
      <ScrollRegion className={styles.scroll} name={POD_TABLE.region}>
        <table className={styles.table}>
          <ColumnHeads labels={POD_TABLE.columns} />
          <tbody>
            {pods.map((pod) => (
              <tr key={pod.name}>
                <th scope="row">{pod.name}</th>
                <td>
                  <StateBadge state={pod.state} />
                </td>
                <td>{pod.node === "" ? NONE : <NodeLink node={pod.node} />}</td>
                <td>{gpus(pod.gpu)}</td>
                <td>{pod.devices.length === 0 ? NONE : pod.devices.join(", ")}</td>
                <td>
                  <Elapsed since={pod.createdAt} />
                </td>
                <td className={styles.message}>{pod.message || reasonText(pod.reason) || NONE}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </ScrollRegion>
    </Panel>
  );
}

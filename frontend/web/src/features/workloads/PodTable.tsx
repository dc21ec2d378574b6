import { Link } from "react-router";
import type { PodRow } from "../../model/rows.ts";
import { gpus } from "../../model/units.ts";
import { Elapsed } from "../../ui/Elapsed.tsx";
import { Panel } from "../../ui/Panel.tsx";
import { StateBadge } from "../../ui/StateBadge.tsx";
import { Empty } from "../../ui/States.tsx";
import styles from "./Workloads.module.css";

export function PodTable({ pods }: { pods: readonly PodRow[] }) {
  if (pods.length === 0) {
    return (
      <Panel title="Pods">
        <Empty title="It has no pods">
          They are created by its controller, or were deleted when it finished.
        </Empty>
      </Panel>
    );
  }
  return (
    <Panel title="Pods" note={String(pods.length)} flush>
      <div className={styles.scroll}>
        <table className={styles.table}>
          <thead>
            <tr>
              {["Pod", "State", "Node", "GPUs", "Devices", "Age", "Message"].map((label) => (
                <th key={label} scope="col">
                  {label}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {pods.map((pod) => (
              <tr key={pod.name}>
                <th scope="row">{pod.name}</th>
                <td>
                  <StateBadge state={pod.state} />
                </td>
                <td>
                  {pod.node === "" ? "–" : <Link to={`/nodes?q=${pod.node}`}>{pod.node}</Link>}
                </td>
                <td>{gpus(pod.gpu)}</td>
                <td>{pod.devices.length === 0 ? "–" : pod.devices.join(", ")}</td>
                <td>
                  <Elapsed since={pod.createdAt} />
                </td>
                <td className={styles.message}>{pod.message || pod.reason || "–"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

import { gpus, modelName } from "../../i18n/numbers.ts";
import { NONE } from "../../i18n/ui.ts";
import { PLACEMENT } from "../../i18n/workloads.ts";
import { useTopic } from "../../live/react.tsx";
import { groupBy } from "../../model/group.ts";
import type { PodRow, WorkloadDetail } from "../../model/rows.ts";
import { DataTable } from "../../ui/DataTable.tsx";
import { NodeLink } from "../../ui/NodeLink.tsx";
import { Panel } from "../../ui/Panel.tsx";
import { Empty } from "../../ui/States.tsx";
import { PlacementReasons } from "./PlacementReasons.tsx";

/** The nodes that the workload's pods are on, and why the scheduler chose them. */
export function Placement({ workload }: { workload: WorkloadDetail }) {
  const { rows: nodes } = useTopic("nodes");
  const byNode = groupBy(
    workload.podList.filter(({ node }) => node !== ""),
    ({ node }) => node,
  );
  return (
    <>
      <Panel title={PLACEMENT.title} flush>
        {byNode.size === 0 ? (
          <Empty title={PLACEMENT.notPlaced}>{PLACEMENT.notPlacedText}</Empty>
        ) : (
          <DataTable name={PLACEMENT.title} columns={PLACEMENT.columns} numberColumns={[4, 5]}>
            {[...byNode]
              .sort(([a], [b]) => (a < b ? -1 : 1))
              .map(([name, pods]) => {
                const node = nodes.get(name);
                return (
                  <tr key={name}>
                    <th scope="row">
                      <NodeLink node={name} />
                    </th>
                    <td>{node?.model ? modelName(node.model) : NONE}</td>
                    <td>{node?.zone || NONE}</td>
                    <td>{node?.rack || NONE}</td>
                    <td>{pods.length}</td>
                    <td>{gpus(sumOfGpus(pods))}</td>
                  </tr>
                );
              })}
          </DataTable>
        )}
      </Panel>
      {byNode.size > 0 && <PlacementReasons workload={workload} />}
    </>
  );
}

function sumOfGpus(pods: readonly PodRow[]): number {
  return pods.reduce((sum, { gpu }) => sum + gpu, 0);
}

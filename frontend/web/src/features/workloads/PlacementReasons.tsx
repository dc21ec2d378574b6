import { useExplain } from "../../api/workloads.ts";
import { becauseText, PLACED, points, refusedText, termText } from "../../i18n/placement.ts";
import type { PodPlacement, WorkloadDetail } from "../../model/rows.ts";
import { DataTable } from "../../ui/DataTable.tsx";
import { NodeLink } from "../../ui/NodeLink.tsx";
import { Panel } from "../../ui/Panel.tsx";
import { QueryResult } from "../../ui/QueryResult.tsx";
import { RichText } from "../../ui/RichText.tsx";
import { Empty } from "../../ui/States.tsx";
import styles from "./Workloads.module.css";

/** Why each placed pod is on its node: what decided, both scores in parts, and who could not take it. */
export function PlacementReasons({ workload }: { workload: WorkloadDetail }) {
  const explain = useExplain(workload);
  const placed = workload.podList.filter(({ node }) => node !== "").length;
  return (
    <Panel title={PLACED.title} note={PLACED.note} flush>
      <QueryResult query={explain} rows={2}>
        {({ placements }) =>
          placements.length === 0 ? (
            <Empty title={PLACED.missingTitle}>{PLACED.missing}</Empty>
          ) : (
            <>
              <DataTable name={PLACED.title} columns={PLACED.columns}>
                {placements.map((placement) => (
                  <Row key={placement.pod} placement={placement} />
                ))}
              </DataTable>
              {placed > placements.length && (
                <p className={styles.footnote}>{PLACED.others(placed - placements.length)}</p>
              )}
            </>
          )
        }
      </QueryResult>
    </Panel>
  );
}

function Row({ placement }: { placement: PodPlacement }) {
  const { pod, node, decidedBy, score, nextNode, nextScore, terms } = placement;
  return (
    <tr className={styles.placed}>
      <th scope="row">
        {pod}
        <div className={styles.sub}>
          <RichText text={PLACED.on} parts={{ node: <NodeLink node={node} /> }} />
        </div>
      </th>
      <td>{becauseText(decidedBy)}</td>
      <td>
        <b>{points(score)}</b>
        <Terms terms={terms.map(({ name, chosen }) => [name, chosen])} />
      </td>
      <td>
        {nextNode === null ? (
          PLACED.none
        ) : (
          <>
            <NodeLink node={nextNode} /> {points(nextScore ?? 0)}
            <Terms terms={terms.map(({ name, next }) => [name, next ?? 0])} />
          </>
        )}
      </td>
      <td>
        {PLACED.possible(placement.possible, placement.considered, placement.nodes)}
        {placement.refused.map(({ reason, nodes }) => (
          <div key={reason} className={styles.sub}>
            {refusedText(reason, nodes)}
          </div>
        ))}
      </td>
    </tr>
  );
}

function Terms({ terms }: { terms: readonly (readonly [string, number])[] }) {
  return terms.map(([name, value]) => (
    <div key={name} className={styles.sub}>
      {termText(name)} {points(value)}
    </div>
  ));
}

import { Select } from "@mantine/core";
import { useEffect, useMemo } from "react";
import { useNavigate, useParams } from "react-router";
import { useTopologies, useTopology } from "../../api/details.ts";
import { NODES } from "../../i18n/nodes.ts";
import { gpus } from "../../i18n/numbers.ts";
import { TOPOLOGY } from "../../i18n/topology.ts";
import { NONE } from "../../i18n/ui.ts";
import { useTopic } from "../../live/react.tsx";
import { withNodes } from "../../model/liveTopology.ts";
import type { Topology } from "../../model/rows.ts";
import { DataTable } from "../../ui/DataTable.tsx";
import { NodesTabs } from "../../ui/NodesTabs.tsx";
import { Page } from "../../ui/Page.tsx";
import { Panel } from "../../ui/Panel.tsx";
import { QueryResult } from "../../ui/QueryResult.tsx";
import { QueueLink } from "../../ui/QueueLink.tsx";
import { Empty } from "../../ui/States.tsx";
import { WorkloadLink } from "../../ui/WorkloadLink.tsx";
import { DomainTree } from "./DomainTree.tsx";
import styles from "./Topology.module.css";

/** The levels of the network with their free GPUs, and how far workloads are spread over them. */
export function TopologyPage() {
  const { name } = useParams();
  const navigate = useNavigate();
  const list = useTopologies();
  const names = (list.data?.items ?? []).map((each) => each.name);
  const shown = name ?? names[0] ?? "";
  const query = useTopology(shown);
  return (
    <Page
      title={NODES.title}
      note={query.data && TOPOLOGY.note(query.data.levels.map((level) => level.name))}
      tools={
        names.length > 1 && (
          <Select
            size="xs"
            aria-label={TOPOLOGY.choose}
            data={names}
            value={shown}
            allowDeselect={false}
            onChange={(value) => value !== null && void navigate(`/topology/${value}`)}
          />
        )
      }
    >
      <NodesTabs active="topology" />
      {list.data !== undefined && shown === "" ? (
        <Empty title={TOPOLOGY.noneTitle}>{TOPOLOGY.none}</Empty>
      ) : (
        <QueryResult
          query={shown === "" ? { data: undefined, error: list.error } : query}
          rows={10}
        >
          {(topology) => (
            <Content
              topology={topology}
              askedAt={query.dataUpdatedAt}
              onAsk={() => void query.refetch({ cancelRefetch: false })}
            />
          )}
        </QueryResult>
      )}
    </Page>
  );
}

/** What is placed where is asked for again after the nodes have changed, but not more often than this. */
const PLACED_EVERY_MS = 5_000;

type ContentProps = { topology: Topology; askedAt: number; onAsk: () => void };

function Content({ topology: answer, askedAt, onAsk }: ContentProps) {
  const { rows: nodes } = useTopic("nodes");
  const topology = useMemo(() => withNodes(answer, nodes), [answer, nodes]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the nodes are why it is asked again
  useEffect(() => {
    const timer = window.setTimeout(onAsk, Math.max(0, askedAt + PLACED_EVERY_MS - Date.now()));
    return () => window.clearTimeout(timer);
  }, [nodes]);
  const names = new Map(topology.domains.map((domain) => [domain.id, domain.name]));
  return (
    <>
      <Panel title={TOPOLOGY.tree} note={TOPOLOGY.treeNote}>
        <DomainTree topology={topology} />
        {topology.outside.length > 0 && (
          <p className={styles.note} title={topology.outside.join(", ")}>
            {TOPOLOGY.outside(topology.outside.length)}
          </p>
        )}
      </Panel>
      <Panel title={TOPOLOGY.placed} note={TOPOLOGY.placedNote} flush>
        {topology.workloads.length === 0 ? (
          <Empty title={TOPOLOGY.noWorkloads} />
        ) : (
          <DataTable
            name={TOPOLOGY.placed}
            columns={TOPOLOGY.columns(topology.levels.map((level) => level.name))}
            numberColumns={[2, 3]}
          >
            {topology.workloads.map(({ workload, owner, queue, gpu, nodes, domains }) => (
              <tr key={workload}>
                <th scope="row">
                  <WorkloadLink workload={workload} name={owner || workload} />
                </th>
                <td>{queue === "" ? NONE : <QueueLink queue={queue} />}</td>
                <td>{gpus(gpu)}</td>
                <td>{nodes}</td>
                {domains.map((ids, level) => (
                  <td
                    key={topology.levels[level]?.label}
                    title={ids.join(", ")}
                    className={ids.length > 1 ? styles.many : undefined}
                  >
                    {ids.length === 1
                      ? TOPOLOGY.inOne(names.get(ids[0] ?? "") ?? NONE)
                      : TOPOLOGY.inMany(ids.length)}
                  </td>
                ))}
              </tr>
            ))}
          </DataTable>
        )}
      </Panel>
    </>
  );
}

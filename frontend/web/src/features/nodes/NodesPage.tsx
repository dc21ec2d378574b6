import { SegmentedControl, Switch, TextInput } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import { useMemo } from "react";
import { useTopic } from "../../live/react.tsx";
import { useHues } from "../../live/useHues.ts";
import { useQueueLabels } from "../../live/useQueueLabels.ts";
import type { Hue } from "../../model/hues.ts";
import type { Node } from "../../model/rows.ts";
import { gpus, plural } from "../../model/units.ts";
import { Card } from "../../ui/Card.tsx";
import { Page } from "../../ui/Page.tsx";
import { QueueMark } from "../../ui/QueueMark.tsx";
import { Empty, Failure, Loading } from "../../ui/States.tsx";
import { useSearch } from "../../ui/useSearch.ts";
import type { Grouping } from "./lines.ts";
import { NodeGrid } from "./NodeGrid.tsx";
import styles from "./Nodes.module.css";

const GROUPINGS: { value: Grouping; label: string }[] = [
  { value: "model", label: "Model" },
  { value: "rack", label: "Rack" },
  { value: "zone", label: "Zone" },
  { value: "pool", label: "Pool" },
];

export function NodesPage() {
  const { rows, version, loaded, problem } = useTopic("nodes");
  const hues = useHues();
  const [search, change] = useSearch();
  const grouping = GROUPINGS.find(({ value }) => value === search.get("group"))?.value ?? "model";
  const text = (search.get("q") ?? "").trim().toLowerCase();
  const onlyFree = search.get("free") === "true";
  // biome-ignore lint/correctness/useExhaustiveDependencies: version says when the rows changed
  const found = useMemo(
    () => [...rows.values()].filter((node) => matches(node, text, onlyFree)),
    [rows, version, text, onlyFree],
  );
  if (problem !== null) return <Failure title={problem.title} detail={problem.detail} />;
  return (
    <Page title="Nodes" note={loaded ? nodesWords(found) : undefined}>
      <Card name="GPU grid">
        <div className={styles.bar}>
          <TextInput
            data-page-search
            size="xs"
            w={190}
            aria-label="Search nodes"
            placeholder="Search"
            leftSection={<IconSearch size={14} />}
            value={search.get("q") ?? ""}
            onChange={(event) => change({ q: event.currentTarget.value })}
          />
          <SegmentedControl
            size="xs"
            aria-label="Group by"
            data={GROUPINGS}
            value={grouping}
            onChange={(value) => change({ group: value === "model" ? null : value })}
          />
          <Switch
            size="sm"
            label="Only with free GPUs"
            checked={onlyFree}
            onChange={(event) => change({ free: event.currentTarget.checked ? "true" : null })}
          />
        </div>
        {!loaded ? (
          <Loading rows={12} />
        ) : rows.size === 0 ? (
          <Empty title="There is no node yet">
            Nodes appear here as soon as they join the cluster.
          </Empty>
        ) : found.length === 0 ? (
          <Empty title="No node matches">Clear the search, or show full nodes too.</Empty>
        ) : (
          <>
            <Legend nodes={found} hues={hues} />
            <NodeGrid nodes={found} grouping={grouping} hues={hues} />
          </>
        )}
      </Card>
    </Page>
  );
}

function matches(node: Node, text: string, onlyFree: boolean): boolean {
  if (onlyFree && node.gpuTotal - node.gpuAllocated <= 0) return false;
  if (text === "") return true;
  return `${node.name} ${node.model} ${node.zone} ${node.rack} ${node.pool}`
    .toLowerCase()
    .includes(text);
}

function nodesWords(nodes: readonly Node[]): string {
  const total = nodes.reduce((sum, node) => sum + node.gpuTotal, 0);
  const allocated = nodes.reduce((sum, node) => sum + node.gpuAllocated, 0);
  return `${plural(nodes.length, "node")}, ${gpus(allocated)} of ${gpus(total)} GPUs allocated`;
}

/** The queues that hold a device in sight, and the states that are no queue's. */
function Legend({ nodes, hues }: { nodes: readonly Node[]; hues: ReadonlyMap<string, Hue> }) {
  const label = useQueueLabels();
  const holding = new Set<string>();
  for (const node of nodes) {
    for (const device of node.devices)
      for (const holder of device.holders) holding.add(holder.queue);
  }
  return (
    <ul className={styles.legend} aria-label="Legend">
      {[...holding].sort().map((queue) => (
        <li key={queue}>
          <QueueMark hue={hues.get(queue)} />
          {label(queue)}
        </li>
      ))}
      <li>
        <span className={styles.swatch} /> free
      </li>
      <li>
        <span className={styles.swatch}>
          <i />
        </span>{" "}
        shared
      </li>
      <li>
        <span className={`${styles.swatch} ${styles.reserved}`} /> reserved
      </li>
      <li>
        <span className={`${styles.swatch} ${styles.unhealthy}`} /> unhealthy
      </li>
    </ul>
  );
}

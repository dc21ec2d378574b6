import { SegmentedControl, Switch, TextInput } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import { useMemo } from "react";
import { LEGEND, NODES } from "../../i18n/nodes.ts";
import { LOADING_MORE } from "../../i18n/ui.ts";
import { useTopic } from "../../live/react.tsx";
import { useHues } from "../../live/useHues.ts";
import { useQueueLabels } from "../../live/useQueueLabels.ts";
import type { Hue } from "../../model/hues.ts";
import type { Node } from "../../model/rows.ts";
import { Card } from "../../ui/Card.tsx";
import { NodesTabs } from "../../ui/NodesTabs.tsx";
import { Page } from "../../ui/Page.tsx";
import { QueueMark } from "../../ui/QueueMark.tsx";
import { Empty, Failure, Loading } from "../../ui/States.tsx";
import { useChoice } from "../../ui/useChoice.ts";
import { useSearch } from "../../ui/useSearch.ts";
import { type Grouping, groupNote } from "./lines.ts";
import { NodeGrid } from "./NodeGrid.tsx";
import styles from "./Nodes.module.css";
import { RestingNodes } from "./RestingNodes.tsx";

/** With more queues the legend would fill the page; a device names its queue when it is clicked. */
const NAMED = 12;
const GROUPINGS: { value: Grouping; label: string }[] = [
  { value: "model", label: NODES.groupings.model },
  { value: "rack", label: NODES.groupings.rack },
  { value: "zone", label: NODES.groupings.zone },
  { value: "pool", label: NODES.groupings.pool },
];

const GROUPING_KEYS = GROUPINGS.map(({ value }) => value);

export function NodesPage() {
  const { rows, loaded, isPartial, problem } = useTopic("nodes");
  const hues = useHues();
  const [search, changeSearch] = useSearch();
  const [grouping, setGrouping] = useChoice("group", GROUPING_KEYS, "model");
  const text = (search.get("q") ?? "").trim().toLowerCase();
  const onlyFree = search.get("free") === "true";
  const onlyIdle = search.get("idle") === "true";
  const matching = useMemo(
    () => [...rows.values()].filter((node) => matches(node, text, onlyFree, onlyIdle)),
    [rows, text, onlyFree, onlyIdle],
  );
  if (problem !== null) return <Failure title={problem.title} detail={problem.detail} />;
  return (
    <Page
      title={NODES.title}
      note={loaded ? groupNote(matching) : isPartial ? LOADING_MORE : undefined}
    >
      <NodesTabs active="grid" />
      <Card name={NODES.card}>
        <div className={styles.bar}>
          <TextInput
            data-page-search
            size="xs"
            w={190}
            aria-label={NODES.searchLabel}
            placeholder={NODES.search}
            leftSection={<IconSearch size={14} />}
            value={search.get("q") ?? ""}
            onChange={(event) => changeSearch({ q: event.currentTarget.value })}
          />
          <SegmentedControl
            size="xs"
            aria-label={NODES.groupBy}
            data={GROUPINGS}
            value={grouping}
            onChange={setGrouping}
          />
          <Switch
            size="sm"
            label={NODES.onlyFree}
            checked={onlyFree}
            onChange={(event) =>
              changeSearch({ free: event.currentTarget.checked ? "true" : null })
            }
          />
          <Switch
            size="sm"
            label={NODES.onlyIdle}
            checked={onlyIdle}
            onChange={(event) =>
              changeSearch({ idle: event.currentTarget.checked ? "true" : null })
            }
          />
        </div>
        <RestingNodes nodes={rows} />
        {!loaded && matching.length === 0 ? (
          <Loading rows={12} />
        ) : rows.size === 0 ? (
          <Empty title={NODES.emptyTitle}>{NODES.empty}</Empty>
        ) : matching.length === 0 ? (
          <Empty title={NODES.noMatchTitle}>{noMatchText(rows.values(), onlyIdle)}</Empty>
        ) : (
          <>
            <Legend nodes={matching} hues={hues} />
            <NodeGrid nodes={matching} grouping={grouping} hues={hues} />
          </>
        )}
      </Card>
    </Page>
  );
}

function noMatchText(nodes: Iterable<Node>, onlyIdle: boolean): string {
  if (!onlyIdle) return NODES.noMatch;
  for (const node of nodes) if (node.gpuIdle !== null) return NODES.noIdle;
  return NODES.idleUnknown;
}

function matches(node: Node, text: string, onlyFree: boolean, onlyIdle: boolean): boolean {
  if (onlyIdle && !node.gpuIdle) return false;
  if (onlyFree && node.gpuTotal - node.gpuAllocated <= 0) return false;
  if (text === "") return true;
  return `${node.name} ${node.model} ${node.zone} ${node.rack} ${node.pool}`
    .toLowerCase()
    .includes(text);
}

/** The queues that hold a shown device, and the states of devices without a queue. */
function Legend({ nodes, hues }: { nodes: readonly Node[]; hues: ReadonlyMap<string, Hue> }) {
  const label = useQueueLabels();
  const devices = new Map<string, number>();
  for (const node of nodes) {
    for (const device of node.devices)
      for (const { queue } of device.holders) devices.set(queue, (devices.get(queue) ?? 0) + 1);
  }
  const largest = [...devices.keys()].sort(
    (a, b) => (devices.get(b) ?? 0) - (devices.get(a) ?? 0) || (a < b ? -1 : 1),
  );
  return (
    <ul className={styles.legend} aria-label={LEGEND.name}>
      {largest.slice(0, NAMED).map((queue) => (
        <li key={queue}>
          <QueueMark hue={hues.get(queue)} />
          {label(queue)}
        </li>
      ))}
      {largest.length > NAMED && <li>{LEGEND.more(largest.length - NAMED)}</li>}
      <li>
        <span className={styles.swatch} /> {LEGEND.free}
      </li>
      <li>
        <span className={styles.swatch}>
          <i />
        </span>{" "}
        {LEGEND.shared}
      </li>
      <li>
        <span className={`${styles.swatch} ${styles.reserved}`} /> {LEGEND.reserved}
      </li>
      <li>
        <span className={`${styles.swatch} ${styles.unhealthy}`} /> {LEGEND.unhealthy}
      </li>
    </ul>
  );
}

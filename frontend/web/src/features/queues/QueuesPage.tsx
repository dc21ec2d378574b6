import { SegmentedControl } from "@mantine/core";
import { useCallback, useMemo } from "react";
import { useTopic } from "../../live/react.tsx";
import { useHues } from "../../live/useHues.ts";
import { type Queue, RESOURCES, type Resource } from "../../model/rows.ts";
import { buildTree } from "../../model/tree.ts";
import { plural, RESOURCE_NAME, UNIT } from "../../model/units.ts";
import { BulletLegend } from "../../ui/BulletBar.tsx";
import { Card } from "../../ui/Card.tsx";
import { Page } from "../../ui/Page.tsx";
import { Empty, Failure, Loading } from "../../ui/States.tsx";
import { useSearch } from "../../ui/useSearch.ts";
import { QueueDrawer } from "./QueueDrawer.tsx";
import styles from "./QueueTree.module.css";
import { QueueTree } from "./QueueTree.tsx";

export function QueuesPage() {
  const { rows, version, loaded, problem } = useTopic("queues");
  const hues = useHues();
  const [search, change] = useSearch();
  const resource = resourceOf(search.get("resource"));
  const selected = search.get("queue");
  // A copy per change: the map is patched in place, and memoised children compare identities.
  // biome-ignore lint/correctness/useExhaustiveDependencies: version says when the rows changed
  const queues = useMemo(() => new Map<string, Queue>(rows), [rows, version]);
  const structure = [...queues.values()]
    .map((queue) => `${queue.name}\t${queue.parent}`)
    .join("\n");
  // biome-ignore lint/correctness/useExhaustiveDependencies: the tree only depends on names and parents
  const tree = useMemo(() => buildTree(queues), [structure]);
  const onEdit = useCallback((name: string) => change({ queue: name }), [change]);
  const open = selected === null ? undefined : queues.get(selected);
  return (
    <Page
      title="Queues"
      note={loaded ? plural(queues.size, "queue") : undefined}
      tools={<BulletLegend />}
    >
      <Card name="Queue hierarchy">
        <div className={styles.bar}>
          <SegmentedControl
            size="xs"
            aria-label="Resource"
            data={RESOURCES.map((value) => ({
              value,
              label: RESOURCE_NAME[value],
            }))}
            value={resource}
            onChange={(value) => change({ resource: value === "gpu" ? null : value })}
          />
          <span style={{ color: "var(--dim)" }}>
            In {UNIT[resource]}. Bars of siblings share one scale.
          </span>
        </div>
        {problem !== null ? (
          <Failure title={problem.title} detail={problem.detail} />
        ) : !loaded ? (
          <Loading rows={10} />
        ) : queues.size === 0 ? (
          <Empty title="There is no queue yet">
            Create one with <code>kubectl apply</code> or <code>POST /api/v1/queues</code>.
          </Empty>
        ) : (
          <QueueTree
            queues={queues}
            tree={tree}
            resource={resource}
            hues={hues}
            selected={selected}
            onEdit={onEdit}
          />
        )}
      </Card>
      <QueueDrawer queue={open} onClose={() => change({ queue: null })} />
    </Page>
  );
}

function resourceOf(text: string | null): Resource {
  return RESOURCES.find((resource) => resource === text) ?? "gpu";
}

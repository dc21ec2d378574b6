import { SegmentedControl } from "@mantine/core";
import { useCallback, useMemo } from "react";
import { RESOURCE_NAME } from "../../i18n/numbers.ts";
import { QUEUES } from "../../i18n/queues.ts";
import { useTopic } from "../../live/react.tsx";
import { useHues } from "../../live/useHues.ts";
import { useUnchanged } from "../../live/useUnchanged.ts";
import { RESOURCES, type Resource } from "../../model/rows.ts";
import { buildTree } from "../../model/tree.ts";
import { BulletLegend } from "../../ui/BulletBar.tsx";
import { Card } from "../../ui/Card.tsx";
import { Page } from "../../ui/Page.tsx";
import { RichText } from "../../ui/RichText.tsx";
import { Empty, Failure, Loading } from "../../ui/States.tsx";
import { useSearch } from "../../ui/useSearch.ts";
import { QueueDrawer } from "./QueueDrawer.tsx";
import styles from "./QueueTree.module.css";
import { QueueTree } from "./QueueTree.tsx";

const COMMANDS = {
  kubectl: <code>{QUEUES.kubectl}</code>,
  rest: <code>{QUEUES.rest}</code>,
};

export function QueuesPage() {
  const { rows: queues, loaded, problem } = useTopic("queues");
  const hues = useHues();
  const [search, changeSearch] = useSearch();
  const resource = resourceOf(search.get("resource"));
  const selected = search.get("queue");
  // The tree depends only on names and parents, which change far less often than the amounts.
  const parents = useMemo(
    () => [...queues.values()].map(({ name, parent }) => ({ name, parent })),
    [queues],
  );
  const structure = useUnchanged(parents);
  const tree = useMemo(() => buildTree(structure), [structure]);
  const onEdit = useCallback((name: string) => changeSearch({ queue: name }), [changeSearch]);
  const editedQueue = selected === null ? undefined : queues.get(selected);
  return (
    <Page
      title={QUEUES.title}
      note={loaded ? QUEUES.count(queues.size) : undefined}
      tools={<BulletLegend />}
    >
      <Card name={QUEUES.hierarchy}>
        <div className={styles.bar}>
          <SegmentedControl
            size="xs"
            aria-label={QUEUES.resource}
            data={RESOURCES.map((value) => ({
              value,
              label: RESOURCE_NAME[value],
            }))}
            value={resource}
            onChange={(value) => changeSearch({ resource: value === "gpu" ? null : value })}
          />
          <span style={{ color: "var(--dim)" }}>{QUEUES.scale(resource)}</span>
        </div>
        {problem !== null ? (
          <Failure title={problem.title} detail={problem.detail} />
        ) : !loaded ? (
          <Loading rows={10} />
        ) : queues.size === 0 ? (
          <Empty title={QUEUES.emptyTitle}>
            <RichText text={QUEUES.empty} parts={COMMANDS} />
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
      <QueueDrawer queue={editedQueue} onClose={() => changeSearch({ queue: null })} />
    </Page>
  );
}

function resourceOf(text: string | null): Resource {
  return RESOURCES.find((resource) => resource === text) ?? "gpu";
}

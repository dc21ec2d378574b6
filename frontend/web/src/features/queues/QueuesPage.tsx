import { Button, SegmentedControl } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { Suspense, useCallback, useMemo, useState } from "react";
import { ApiProblem } from "../../api/problem.ts";
import { useMe } from "../../api/useMe.ts";
import { useDraft } from "../../editing/useDraft.ts";
import { DRAFT } from "../../i18n/changes.ts";
import { QUEUES, VIEWS } from "../../i18n/queues.ts";
import { useTopic } from "../../live/react.tsx";
import { useHues } from "../../live/useHues.ts";
import { useUnchanged } from "../../live/useUnchanged.ts";
import { mayEdit, mayPlaceUnder } from "../../model/rights.ts";
import type { Me, Queue, QueuePatch } from "../../model/rows.ts";
import { ancestors, buildTree } from "../../model/tree.ts";
import { BulletLegend } from "../../ui/BulletBar.tsx";
import { Card } from "../../ui/Card.tsx";
import { lazyPart } from "../../ui/lazyPart.tsx";
import { Page } from "../../ui/Page.tsx";
import { ResourcePicker, useResource } from "../../ui/ResourcePicker.tsx";
import { RichText } from "../../ui/RichText.tsx";
import { reportFailure } from "../../ui/reportDone.tsx";
import { Empty, Failure, Loading } from "../../ui/States.tsx";
import { useChoice } from "../../ui/useChoice.ts";
import { useLatest } from "../../ui/useLatest.ts";
import { useSearch } from "../../ui/useSearch.ts";
import { useStale } from "../../ui/useStale.ts";
import type { QueueAction } from "./dialogs/QueueDialogs.tsx";
import styles from "./tree/QueueTree.module.css";
import { QueueTree } from "./tree/QueueTree.tsx";

/** Loaded after the page, or when they are first opened: the tree is on screen before them. */
const FairnessView = lazyPart(async () => (await import("./views/FairnessView.tsx")).FairnessView);
const IcicleView = lazyPart(async () => (await import("./views/IcicleView.tsx")).IcicleView);
const QueueDrawer = lazyPart(async () => (await import("./form/QueueDrawer.tsx")).QueueDrawer);
const QueueDialogs = lazyPart(
  async () => (await import("./dialogs/QueueDialogs.tsx")).QueueDialogs,
);

const VIEW_KEYS = ["tree", "icicle", "fairness"] as const;
const QUEUE_VIEWS = VIEW_KEYS.map((value) => ({ value, label: VIEWS[value] }));
const COMMANDS = {
  kubectl: <code>{QUEUES.kubectl}</code>,
  rest: <code>{QUEUES.rest}</code>,
};

export function QueuesPage() {
  const { rows: queues, loaded, problem } = useTopic("queues");
  const hues = useHues();
  const [search, changeSearch] = useSearch();
  const [resource, setResource] = useResource();
  const [view, setView] = useChoice("view", VIEW_KEYS, "tree");
  const selected = search.get("queue");
  // The tree depends only on names and parents, which change far less often than the amounts.
  const parents = useMemo(
    () => [...queues.values()].map(({ name, parent }) => ({ name, parent })),
    [queues],
  );
  const structure = useUnchanged(parents);
  const tree = useMemo(() => buildTree(structure), [structure]);
  const closed = search.get("closed") ?? "";
  const collapsed = useMemo(() => new Set(closed.split(",").filter(Boolean)), [closed]);
  const onCollapse = (names: readonly string[]) => changeSearch({ closed: names.join(",") });
  const onEdit = useCallback((name: string) => changeSearch({ queue: name }), [changeSearch]);
  const me = useMe();
  const [action, setAction] = useState<QueueAction | null>(null);
  const draft = useDraft();
  const { edits } = draft;
  const draftedEdits = useUnchanged(edits);
  const drafted = useMemo(
    () => new Map(draftedEdits.map((edit) => [edit.name, edit])),
    [draftedEdits],
  );
  const isStale = useStale() !== null;
  const mayEditAny = me?.rights.editQueues === true;
  /** Ask where to move a queue, if the user may move it; a target that is no possible parent is left out. */
  const move = (name: string, target?: string) => {
    if (isStale || !mayEdit(me, queues, name) || queues.get(name)?.managedBy !== "") return;
    const isPossible =
      target !== undefined &&
      mayPlaceUnder(me, queues, target) &&
      !ancestors(queues, target).includes(name);
    setAction({ kind: "move", queue: name, ...(isPossible ? { target } : {}) });
  };
  // With one identity for ever, because rows are drawn again only when their queue changes.
  const latestMove = useLatest(move);
  const onMove = useCallback<typeof move>(
    (name, target) => latestMove.current(name, target),
    [latestMove],
  );
  const mayInline = (name: string) =>
    !isStale && queues.get(name)?.managedBy === "" && mayEdit(me, queues, name);
  const inline = async (name: string, edit: QueuePatch) => {
    try {
      await draft.add({ name, action: "update", edit });
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      reportFailure(DRAFT.failed, error.message);
    }
  };
  const selectedRights = {
    edit: selected !== null && mayEdit(me, queues, selected),
    place: selected !== null && mayPlaceUnder(me, queues, selected),
    anywhere: mayEditAny,
    admin: me?.isAdmin === true,
  };
  return (
    <Page
      title={QUEUES.title}
      note={loaded ? QUEUES.count(queues.size) : undefined}
      tools={view === "tree" ? <BulletLegend /> : undefined}
    >
      <Card name={QUEUES.hierarchy}>
        <div className={styles.bar}>
          <SegmentedControl
            size="xs"
            aria-label={VIEWS.label}
            data={QUEUE_VIEWS}
            value={view}
            onChange={setView}
          />
          <ResourcePicker value={resource} onChange={setResource} />
          {view === "tree" && <span style={{ color: "var(--dim)" }}>{QUEUES.scale(resource)}</span>}
          {mayEditAny && (
            <Button
              className={styles.create ?? ""}
              size="xs"
              disabled={isStale}
              leftSection={<IconPlus size={15} />}
              onClick={() => setAction({ kind: "create", queue: firstPlace(me, queues) })}
            >
              {QUEUES.create}
            </Button>
          )}
        </div>
        {problem !== null ? (
          <Failure title={problem.title} detail={problem.detail} />
        ) : !loaded ? (
          <Loading rows={10} />
        ) : queues.size === 0 ? (
          <Empty title={QUEUES.emptyTitle}>
            <RichText text={QUEUES.empty} parts={COMMANDS} />
          </Empty>
        ) : view === "fairness" ? (
          <Suspense fallback={<Loading rows={10} />}>
            <FairnessView queues={queues} resource={resource} />
          </Suspense>
        ) : view === "icicle" ? (
          <Suspense fallback={<Loading rows={10} />}>
            <IcicleView queues={queues} tree={tree} resource={resource} />
          </Suspense>
        ) : (
          <QueueTree
            queues={queues}
            tree={tree}
            resource={resource}
            hues={hues}
            selected={selected}
            drafted={drafted}
            collapsed={collapsed}
            onCollapse={onCollapse}
            onEdit={onEdit}
            onMove={mayEditAny ? onMove : undefined}
            mayInline={mayInline}
            onInline={(name, edit) => void inline(name, edit)}
          />
        )}
      </Card>
      <Suspense>
        <QueueDrawer
          name={loaded ? selected : null}
          queue={selected === null ? undefined : queues.get(selected)}
          rights={selectedRights}
          onAction={setAction}
          onClose={() => changeSearch({ queue: null })}
        />
      </Suspense>
      {action !== null && (
        <Suspense>
          <QueueDialogs
            action={action}
            queues={queues}
            me={me}
            onDone={(name) => {
              setAction(null);
              if (name !== undefined) changeSearch({ queue: name });
            }}
          />
        </Suspense>
      )}
    </Page>
  );
}

/** Return where a new queue is offered first: at the top, or at the first queue the user may place one below. */
function firstPlace(me: Me | undefined, queues: ReadonlyMap<string, Queue>): string | null {
  if (mayPlaceUnder(me, queues, null)) return null;
  return [...queues.keys()].find((name) => mayPlaceUnder(me, queues, name)) ?? null;
}

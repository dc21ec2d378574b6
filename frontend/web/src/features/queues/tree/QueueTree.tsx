import { hotkeysCoreFeature, type ItemInstance, syncDataLoaderFeature } from "@headless-tree/core";
import { useTree } from "@headless-tree/react";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type HTMLProps, useEffect, useMemo, useRef, useState } from "react";
import { GLOSSARY } from "../../../i18n/glossary.ts";
import { CUT, QUEUES } from "../../../i18n/queues.ts";
import type { DraftEdit } from "../../../model/draft.ts";
import type { Hue } from "../../../model/hues.ts";
import { beside, inlinePointers } from "../../../model/inline.ts";
import type { Queue, QueuePatch, Resource } from "../../../model/rows.ts";
import { isLeaf, type QueueTree as Tree } from "../../../model/tree.ts";
import type { Pointer } from "../../../model/values.ts";
import { bulletOf, bulletReach } from "../../../ui/BulletBar.tsx";
import { ROW_HEIGHT, usePreferences } from "../../../ui/preferences.ts";
import { useLatest } from "../../../ui/useLatest.ts";
import { useRemeasure } from "../../../ui/useRemeasure.ts";
import { COLUMNS, TEMPLATE } from "./columns.ts";
import type { Inline } from "./InlineCell.tsx";
import { QueueRow } from "./QueueRow.tsx";
import styles from "./QueueTree.module.css";
import { useCut } from "./useCut.ts";
import { useTrends } from "./useTrends.ts";

const DRAG_TYPE = "application/x-kaiweb-queue";
/** The invisible item above all queues; no queue can have this name. */
const ROOT = "\0root";
/** As in the style sheet: a row must not be scrolled below the sticky header. */
const HEADER_HEIGHT = 34;
/** The scale of a bar is a little longer than the longest amount. */
const SCALE_MARGIN = 1.03;

type Props = {
  queues: ReadonlyMap<string, Queue>;
  tree: Tree;
  resource: Resource;
  hues: ReadonlyMap<string, Hue>;
  selected: string | null;
  /** The edits of the draft, by queue. */
  drafted: ReadonlyMap<string, DraftEdit>;
  /** The names of the queues whose children are hidden. */
  collapsed: ReadonlySet<string>;
  onCollapse: (names: readonly string[]) => void;
  onEdit: (name: string) => void;
  /** Begin to move a queue, below `target` if that is known; without it no row can be dragged. */
  onMove: ((name: string, target?: string) => void) | undefined;
  /** Whether the cells of a queue can be edited in their place; what is typed goes to `onInline`. */
  mayInline: (name: string) => boolean;
  onInline: (name: string, patch: QueuePatch) => void;
};

/** The queue hierarchy as an ARIA treegrid: arrow keys move, collapse and expand; Enter opens. */
export function QueueTree({
  queues,
  tree,
  resource,
  hues,
  selected,
  drafted,
  collapsed,
  onCollapse,
  onEdit,
  onMove,
  mayInline,
  onInline,
}: Props) {
  const rowHeight = ROW_HEIGHT[usePreferences((state) => state.density)];
  const scroller = useRef<HTMLDivElement>(null);
  const parents = useMemo(() => [...tree.children.keys()], [tree]);
  const expandedItems = useMemo(
    () => parents.filter((name) => !collapsed.has(name)),
    [parents, collapsed],
  );

  const [editing, setEditing] = useState<{ queue: string; pointer: Pointer } | null>(null);
  const start = (queue: string, pointer: Pointer) => {
    if (mayInline(queue)) setEditing({ queue, pointer });
  };
  const end: Inline["end"] = (queue, pointer, patch, step) => {
    if (patch !== null) onInline(queue, patch);
    const next = step === 0 ? null : beside(pointer, resource, step);
    setEditing(next === null ? null : { queue, pointer: next });
    if (next === null) {
      view.getItemInstance(queue).setFocused();
      view.updateDomFocus();
    }
  };
  // With one identity for ever, because rows are drawn again only when what they show changes.
  const latest = useLatest({ start, end });
  const inline = useMemo<Inline>(
    () => ({
      start: (queue, pointer) => latest.current.start(queue, pointer),
      end: (...args) => latest.current.end(...args),
    }),
    [latest],
  );

  const { cut, hotkeys: cutHotkeys } = useCut({
    mayMove: (name) => onMove !== undefined && mayInline(name),
    onMove: (name, target) => onMove?.(name, target),
  });

  const view = useTree<string>({
    rootItemId: ROOT,
    state: { expandedItems },
    setExpandedItems: (update) => {
      const next = typeof update === "function" ? update(expandedItems) : update;
      onCollapse(parents.filter((name) => !next.includes(name)));
    },
    getItemName: (item) => queues.get(item.getId())?.displayName ?? item.getId(),
    isItemFolder: (item) => item.getId() === ROOT || !isLeaf(tree, item.getId()),
    dataLoader: {
      getItem: (name) => name,
      getChildren: (name) => [...(name === ROOT ? tree.roots : (tree.children.get(name) ?? []))],
    },
    scrollToItem: (item) => rows.scrollToIndex(item.getItemMeta().index),
    hotkeys: {
      customOpen: {
        hotkey: "Enter",
        handler: (_, instance) => onEdit(instance.getFocusedItem().getId()),
      },
      customMove: {
        hotkey: "KeyM",
        handler: (_, instance) => onMove?.(instance.getFocusedItem().getId()),
      },
      ...cutHotkeys,
      customInline: {
        hotkey: "F2",
        handler: (_, instance) => {
          const first = inlinePointers(resource)[0];
          if (first !== undefined) inline.start(instance.getFocusedItem().getId(), first);
        },
      },
      customEdit: {
        hotkey: "KeyE",
        handler: (_, instance) => onEdit(instance.getFocusedItem().getId()),
      },
    },
    ignoreHotkeysOnInputs: true,
    features: [syncDataLoaderFeature, hotkeysCoreFeature],
  });
  // The effect also runs for another `view`, which is no reason to build the tree again.
  const builtFrom = useRef<Tree>(null);
  const [built, setBuilt] = useState(0);
  useEffect(() => {
    if (builtFrom.current === tree) return;
    builtFrom.current = tree;
    view.rebuildTree();
    setBuilt((count) => count + 1);
  }, [tree, view]);

  // Until the tree is built again, the view may have queues that no longer exist.
  // Asking the view for each of 2,000 queues takes longer than a frame, so it is not done while scrolling.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the view keeps its identity when its items change
  const items = useMemo(
    () => view.getItems().filter((item) => tree.level.has(item.getId())),
    [view, tree, built, expandedItems],
  );
  const rows = useVirtualizer({
    count: items.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: 12,
    scrollPaddingStart: HEADER_HEIGHT,
  });
  useRemeasure(rows, rowHeight);
  const trends = useTrends(
    rows.getVirtualItems().flatMap(({ index }) => items[index]?.getId() ?? []),
    queues,
  );
  const reach = useMemo(() => reachByParent(queues, resource), [queues, resource]);

  const isCut = (name: string) => cut?.name === name && !cut.isLocked;
  return (
    <>
      <div role="status">
        {cut !== null && queues.has(cut.name) && (
          <p className={styles.cutNote}>{(cut.isLocked ? CUT.locked : CUT.taken)(cut.name)}</p>
        )}
      </div>
      <div className={styles.grid} ref={scroller}>
        <div
          {...(view.getContainerProps(QUEUES.tree) as HTMLProps<HTMLDivElement>)}
          role="treegrid"
          aria-rowcount={items.length + 1}
          aria-colcount={COLUMNS.length}
          className={styles.inner}
        >
          <Header />
          <div role="rowgroup" style={{ height: rows.getTotalSize(), position: "relative" }}>
            {rows.getVirtualItems().map(({ index, start: top }) => {
              const item = items[index];
              const queue = item === undefined ? undefined : queues.get(item.getId());
              if (item === undefined || queue === undefined) return null;
              return (
                <QueueRow
                  key={queue.name}
                  queue={queue}
                  resource={resource}
                  hue={hues.get(queue.name)}
                  level={tree.level.get(queue.name) ?? 1}
                  isFolder={item.isFolder()}
                  isOpen={item.isExpanded()}
                  drafted={drafted.get(queue.name)}
                  isSelected={selected === queue.name}
                  isCut={isCut(queue.name)}
                  trend={trends.get(queue.name)}
                  reach={reach.get(queue.parent ?? "") ?? 1}
                  start={top}
                  inline={mayInline(queue.name) ? inline : undefined}
                  editing={editing?.queue === queue.name ? editing.pointer : null}
                  rowProps={{
                    ...rowProps(item, index, () => onEdit(queue.name)),
                    ...dragProps(queue.name, onMove),
                  }}
                  onToggle={() => (item.isExpanded() ? item.collapse() : item.expand())}
                  onEdit={onEdit}
                />
              );
            })}
          </div>
        </div>
      </div>
    </>
  );
}

function Header() {
  return (
    <div role="rowgroup" className={styles.header} style={{ position: "sticky" }}>
      <div
        role="row"
        aria-rowindex={1}
        className={`${styles.row} ${styles.header}`}
        style={{ gridTemplateColumns: TEMPLATE }}
      >
        {COLUMNS.map(({ key, label, numeric }) => (
          <div
            key={key}
            role="columnheader"
            className={numeric ? styles.number : ""}
            title={key in GLOSSARY ? GLOSSARY[key as keyof typeof GLOSSARY].text : undefined}
          >
            {key === "edit" ? <span className="visually-hidden">{label}</span> : label}
          </div>
        ))}
      </div>
    </div>
  );
}

/** Return the tree's props for focus, keys and levels, with the role of a row of a treegrid. */
function rowProps(
  item: ItemInstance<string>,
  index: number,
  open: () => void,
): HTMLProps<HTMLDivElement> {
  const {
    role: _,
    "aria-label": __,
    "aria-selected": ___,
    "aria-expanded": expanded,
    ...treeProps
  } = item.getProps() as Record<string, unknown>;
  const own: HTMLProps<HTMLDivElement> = {
    role: "row",
    "aria-rowindex": index + 2,
    // Assistive technology may move the focus, and the tree must follow it.
    onFocus: (event) => {
      if (event.target === event.currentTarget && !item.isFocused()) item.setFocused();
    },
    onClick: () => {
      item.setFocused();
      open();
    },
  };
  // A row that cannot be expanded has no such state.
  const expansion = item.isFolder() ? { "aria-expanded": expanded as boolean } : {};
  return { ...treeProps, ...own, ...expansion };
}

/** Return the props that let a row be dragged onto another one, which asks to move it there. */
function dragProps(name: string, onMove: Props["onMove"]): HTMLProps<HTMLDivElement> {
  if (onMove === undefined) return {};
  return {
    draggable: true,
    onDragStart: (event) => event.dataTransfer.setData(DRAG_TYPE, name),
    onDragOver: (event) => {
      if (event.dataTransfer.types.includes(DRAG_TYPE)) event.preventDefault();
    },
    onDrop: (event) => {
      event.preventDefault();
      const dragged = event.dataTransfer.getData(DRAG_TYPE);
      if (dragged !== "" && dragged !== name) onMove(dragged, name);
    },
  };
}

/** Return the end of the scale per parent: siblings share it, so their bars can be compared. */
function reachByParent(
  queues: ReadonlyMap<string, Queue>,
  resource: Resource,
): ReadonlyMap<string, number> {
  const reach = new Map<string, number>();
  for (const queue of queues.values()) {
    const parent = queue.parent ?? "";
    reach.set(
      parent,
      Math.max(reach.get(parent) ?? 0, bulletReach(bulletOf(queue, resource)) * SCALE_MARGIN),
    );
  }
  return reach;
}

import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, type ReactNode, useMemo, useRef, useState } from "react";
import { TABLE } from "../i18n/ui.ts";
import { Card } from "./Card.tsx";
import { ColumnMenu } from "./ColumnMenu.tsx";
import { type Column, type Sort, shownColumns, sortRows } from "./columns.ts";
import { usePreferences } from "./preferences.ts";
import { TableHeader } from "./TableHeader.tsx";
import { type RowActions, TableRow } from "./TableRow.tsx";
import { useLatest } from "./useLatest.ts";
import { useRemeasure } from "./useRemeasure.ts";
import { useReturnToRow } from "./useReturnToRow.ts";
import { useStableOrder } from "./useStableOrder.ts";
import styles from "./VirtualTable.module.css";

type Props<T> = {
  name: string;
  rows: readonly T[];
  rowKey: (row: T) => string;
  columns: readonly Column<T>[];
  rowHeight: number;
  minWidth: number;
  sort: Sort;
  onSort: (sort: Sort) => void;
  onOpen?: (row: T) => void;
  tools?: ReactNode;
  empty: ReactNode;
  foot?: ReactNode;
};

/** A long live table. Only visible rows are drawn, and rows keep their place while someone reads. */
export function VirtualTable<T>(props: Props<T>) {
  const {
    name,
    rows,
    rowKey,
    columns: allColumns,
    rowHeight,
    minWidth,
    sort,
    onSort,
    onOpen,
    tools,
    empty,
    foot,
  } = props;
  const hidden = usePreferences((state) => state.hiddenColumns[name]) ?? NONE_HIDDEN;
  const columns = useMemo(() => shownColumns(allColumns, hidden), [allColumns, hidden]);
  const scroller = useRef<HTMLDivElement>(null);
  const [isHeld, setHeld] = useState({ pointer: false, focus: false });
  const [active, setActive] = useState<string | null>(null);
  const byKey = useMemo(() => new Map(rows.map((row) => [rowKey(row), row])), [rows, rowKey]);
  const wanted = useMemo(
    () => sortRows(rows, allColumns, sort).map(rowKey),
    [rows, allColumns, sort, rowKey],
  );
  const { order, waiting, settle } = useStableOrder(wanted, isHeld.pointer || isHeld.focus, sort);
  const virtual = useVirtualizer({
    count: order.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: 10,
    scrollPaddingStart: 34,
  });
  useRemeasure(virtual, rowHeight);
  const template = columns.map((column) => column.width).join(" ");
  const activeIndex = Math.max(0, active === null ? 0 : order.indexOf(active));

  const focusRow = (index: number) => {
    const bounded = Math.min(Math.max(0, index), order.length - 1);
    setActive(order[bounded] ?? null);
    virtual.scrollToIndex(bounded);
    const focusDrawn = (frames: number) =>
      requestAnimationFrame(() => {
        const drawn = scroller.current?.querySelector<HTMLElement>(`[data-index="${bounded}"]`);
        if (drawn) drawn.focus();
        else if (frames > 0) focusDrawn(frames - 1);
      });
    focusDrawn(DRAWN_WITHIN_FRAMES);
  };
  const noteOpened = useReturnToRow(name, order, focusRow);
  const open = (row: T) => {
    noteOpened(rowKey(row));
    onOpen?.(row);
  };
  const onKeyDown = (event: KeyboardEvent, index: number, row: T) => {
    if (event.target !== event.currentTarget) return;
    const page = Math.max(
      1,
      Math.floor((scroller.current?.clientHeight ?? rowHeight) / rowHeight) - 2,
    );
    const target = STEPS[event.key]?.(index, page, order.length);
    if (target !== undefined) {
      event.preventDefault();
      focusRow(target);
    } else if (event.key === "Enter") open(row);
  };
  // A ref keeps its identity, so that new handlers do not draw all rows again.
  const actions = useLatest<RowActions<T>>({
    onKeyDown,
    onFocus: (row) => setActive(rowKey(row)),
    onOpen: open,
  });

  return (
    <Card name={name}>
      <div className={styles.bar}>
        {tools}
        <ColumnMenu table={name} columns={allColumns} />
        {waiting > 0 && (isHeld.pointer || isHeld.focus) && (
          <button type="button" className={styles.chip} onClick={settle}>
            {TABLE.sortNow(waiting)}
          </button>
        )}
      </div>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: it only detects that someone is reading the rows */}
      <div
        className={styles.scroll}
        ref={scroller}
        onPointerEnter={() => setHeld((held) => ({ ...held, pointer: true }))}
        onPointerLeave={() => setHeld((held) => ({ ...held, pointer: false }))}
        onFocus={() => setHeld((held) => ({ ...held, focus: true }))}
        onBlur={() => setHeld((held) => ({ ...held, focus: false }))}
      >
        {order.length === 0 ? (
          empty
        ) : (
          <div
            role="grid"
            aria-label={name}
            aria-rowcount={order.length + 1}
            aria-colcount={columns.length}
            style={{ minWidth }}
          >
            <TableHeader columns={columns} template={template} sort={sort} onSort={onSort} />
            <div role="rowgroup" style={{ height: virtual.getTotalSize(), position: "relative" }}>
              {virtual.getVirtualItems().map(({ index, start }) => {
                const key = order[index] ?? "";
                const row = byKey.get(key);
                if (row === undefined) return null;
                return (
                  <TableRow
                    key={key}
                    row={row}
                    index={index}
                    start={start}
                    height={rowHeight}
                    columns={columns}
                    template={template}
                    isActive={index === activeIndex}
                    actions={actions}
                  />
                );
              })}
            </div>
          </div>
        )}
      </div>
      {foot !== undefined && <div className={styles.foot}>{foot}</div>}
    </Card>
  );
}

/** A table that has just been opened knows only after some frames which of its rows are in view. */
const DRAWN_WITHIN_FRAMES = 30;

/** One array for ever, so that columns are not chosen anew at every render. */
const NONE_HIDDEN: readonly string[] = [];

const STEPS: Readonly<Record<string, (index: number, page: number, count: number) => number>> = {
  ArrowDown: (index) => index + 1,
  ArrowUp: (index) => index - 1,
  PageDown: (index, page) => index + page,
  PageUp: (index, page) => index - page,
  Home: () => 0,
  End: (_, __, count) => count - 1,
};

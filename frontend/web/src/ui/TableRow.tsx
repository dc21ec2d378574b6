import { type KeyboardEvent, memo, type ReactNode } from "react";
import type { Column } from "./columns.ts";
import styles from "./VirtualTable.module.css";

export type RowActions<T> = {
  onKeyDown(event: KeyboardEvent, index: number, row: T): void;
  onFocus(row: T): void;
  onOpen(row: T): void;
};

type RowProps<T> = {
  row: T;
  index: number;
  start: number;
  height: number;
  columns: readonly Column<T>[];
  template: string;
  isActive: boolean;
  actions: { readonly current: RowActions<T> };
};

/** One row. A changed row is a new object, so an unchanged one is not drawn again. */
export const TableRow = memo(function TableRow<T>(props: RowProps<T>) {
  const { row, index, start, height, columns, template, isActive, actions } = props;
  return (
    <div
      role="row"
      data-index={index}
      aria-rowindex={index + 2}
      tabIndex={isActive ? 0 : -1}
      className={styles.row}
      style={{ gridTemplateColumns: template, height, transform: `translateY(${start}px)` }}
      onKeyDown={(event) => actions.current.onKeyDown(event, index, row)}
      onFocus={() => actions.current.onFocus(row)}
      onClick={() => actions.current.onOpen(row)}
    >
      {columns.map((column, at) => (
        <div
          key={column.key}
          role={at === 0 ? "rowheader" : "gridcell"}
          className={`${styles.cell} ${column.numeric ? styles.number : ""}`}
        >
          {column.render(row)}
        </div>
      ))}
    </div>
  );
}) as <T>(props: RowProps<T>) => ReactNode;

import { IconArrowDown, IconArrowUp } from "@tabler/icons-react";
import type { Column, Sort } from "./columns.ts";
import styles from "./VirtualTable.module.css";

type HeaderProps<T> = {
  columns: readonly Column<T>[];
  template: string;
  sort: Sort;
  onSort: (sort: Sort) => void;
};

export function TableHeader<T>({ columns, template, sort, onSort }: HeaderProps<T>) {
  return (
    <div role="rowgroup" className={styles.header} style={{ display: "block", padding: 0 }}>
      <div
        role="row"
        aria-rowindex={1}
        className={styles.header}
        style={{ gridTemplateColumns: template }}
      >
        {columns.map(({ key, label, numeric, sortBy }) => {
          const direction =
            sort === key ? "ascending" : sort === `-${key}` ? "descending" : undefined;
          return (
            <div
              key={key}
              role="columnheader"
              className={numeric ? styles.number : ""}
              {...(direction ? { "aria-sort": direction } : {})}
            >
              {sortBy === undefined ? (
                label
              ) : (
                <button
                  type="button"
                  className={styles.sort}
                  onClick={() => onSort(direction === "ascending" ? `-${key}` : key)}
                >
                  {label}
                  {direction === "ascending" && <IconArrowUp size={12} aria-hidden />}
                  {direction === "descending" && <IconArrowDown size={12} aria-hidden />}
                </button>
              )}
            </div>
          );
        })}
      </div>
    </div>
  );
}

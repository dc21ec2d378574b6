/** The columns of a table and the order of its rows. */
import type { ReactNode } from "react";

export type Column<T> = {
  readonly key: string;
  readonly label: string;
  readonly width: string;
  readonly numeric?: boolean;
  readonly render: (row: T) => ReactNode;
  /** What this column sorts by; without it the column cannot be sorted. */
  readonly sortBy?: (row: T) => string | number;
};

/** A column's key; a leading minus means largest first. */
export type Sort = string;

// Created once, because a collator per comparison costs more than the sorting itself.
const COLLATOR = new Intl.Collator("en", { numeric: true });

/** Sort by one column; equal rows keep the order they came in. */
export function sortRows<T>(rows: readonly T[], columns: readonly Column<T>[], sort: Sort): T[] {
  const isDown = sort.startsWith("-");
  const sortBy = columns.find((column) => column.key === (isDown ? sort.slice(1) : sort))?.sortBy;
  if (sortBy === undefined) return [...rows];
  const keyed = rows.map((row) => ({ row, key: sortBy(row) }));
  const sign = isDown ? -1 : 1;
  keyed.sort((a, b) => sign * compare(a.key, b.key));
  return keyed.map(({ row }) => row);
}

function compare(a: string | number, b: string | number): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return COLLATOR.compare(String(a), String(b));
}

/** Return the columns that are not hidden; the first one always stays. */
export function shownColumns<T>(
  columns: readonly Column<T>[],
  hidden: readonly string[],
): readonly Column<T>[] {
  return hidden.length === 0
    ? columns
    : columns.filter(({ key }, at) => at === 0 || !hidden.includes(key));
}

import type { ReactNode } from "react";
import { ColumnHeads } from "./ColumnHeads.tsx";
import styles from "./DataTable.module.css";

type Props = {
  name: string;
  columns: readonly string[];
  /** The indices of the columns with numbers, which are aligned at their last digit. */
  numberColumns?: readonly number[];
  /** Whether the table is at most as high as a chart; longer ones scroll. */
  isShort?: boolean;
  children: ReactNode;
};

/** A plain table whose rows are `<tr>` elements; on a narrow screen it scrolls sideways. */
export function DataTable({ name, columns, numberColumns = [], isShort = false, children }: Props) {
  const aligned = numberColumns.map((index) => styles[`number${index}`]);
  const scroll = isShort ? styles.short : styles.scroll;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
    <div className={scroll} role="group" aria-label={name} tabIndex={0}>
      <table className={[styles.table, ...aligned].join(" ")}>
        <ColumnHeads labels={columns} />
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

import type { ReactNode } from "react";
import { ColumnHeads } from "./ColumnHeads.tsx";
import styles from "./DataTable.module.css";

type Props = { name: string; columns: readonly string[]; children: ReactNode };

/** A plain table whose rows are `<tr>` elements; on a narrow screen it scrolls sideways. */
export function DataTable({ name, columns, children }: Props) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
    <div className={styles.scroll} role="group" aria-label={name} tabIndex={0}>
      <table className={styles.table}>
        <ColumnHeads labels={columns} />
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

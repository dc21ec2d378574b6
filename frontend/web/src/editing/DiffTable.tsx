import { CHANGE, pointerName, pointerValue } from "../i18n/changes.ts";
import type { Difference } from "../model/rows.ts";
import { ColumnHeads } from "../ui/ColumnHeads.tsx";
import styles from "./Diff.module.css";

/** The fields that an edit changes, with their values before and after. */
export function DiffTable({ diff, name }: { diff: readonly Difference[]; name: string }) {
  return (
    <table className={styles.table} aria-label={name}>
      <ColumnHeads labels={[CHANGE.field, CHANGE.before, CHANGE.after]} />
      <tbody>
        {diff.map(({ pointer, before, after }) => (
          <tr key={pointer}>
            <th scope="row">{pointerName(pointer)}</th>
            <td className={styles.before}>{pointerValue(pointer, before)}</td>
            <td className={styles.after}>{pointerValue(pointer, after)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

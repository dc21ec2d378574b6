import { useEffect, useEffectEvent } from "react";
import { useLocation, useNavigationType } from "react-router";

/** The row by which each entry of the history was left, by entry and table. */
const openedRows = new Map<string, string>();

/**
 * Give the focus back to the row that was opened, when the reader comes back to its table.
 *
 * Returns what the table calls when a row is opened.
 */
export function useReturnToRow(
  table: string,
  order: readonly string[],
  focusRow: (index: number) => void,
): (row: string) => void {
  const entry = `${useLocation().key} ${table}`;
  const isBack = useNavigationType() === "POP";
  const index = isBack ? order.indexOf(openedRows.get(entry) ?? "") : -1;
  const isThere = index !== -1;
  const goBack = useEffectEvent(() => {
    openedRows.delete(entry);
    focusRow(index);
  });
  useEffect(() => {
    if (isThere) goBack();
  }, [isThere]);
  return (row) => void openedRows.set(entry, row);
}

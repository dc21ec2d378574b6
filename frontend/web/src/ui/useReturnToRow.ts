import { useEffect, useEffectEvent, useState } from "react";
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
  // What the table was left by before it was shown now; a row that is opened now leads away.
  const [left, setLeft] = useState(() => (isBack ? openedRows.get(entry) : undefined));
  const isThere = left !== undefined && order.includes(left);
  const goBack = useEffectEvent(() => {
    if (left !== undefined) focusRow(order.indexOf(left));
    setLeft(undefined);
  });
  useEffect(() => {
    if (isThere) goBack();
  }, [isThere]);
  return (row) => void openedRows.set(entry, row);
}

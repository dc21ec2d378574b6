/** Rows by their creation, newest first, in an order that is found again only when rows come or go. */

type Created = { readonly createdAt: string };
export type CreationOrder<T> = { readonly keys: readonly string[]; readonly rows: readonly T[] };

export const NO_ORDER: CreationOrder<never> = { keys: [], rows: [] };

/**
 * Return the rows, newest first; rows of the same moment by key.
 *
 * The contents of rows change several times a second, and their order does not: while the keys are those of the
 * previous order, nothing is compared.
 */
export function creationOrder<T extends Created>(
  rows: ReadonlyMap<string, T>,
  previous: CreationOrder<T>,
): CreationOrder<T> {
  const updated = rows.size === previous.keys.length ? updatedRows(rows, previous) : null;
  if (updated !== null) return { keys: previous.keys, rows: updated };
  const entries = [...rows].sort(([aKey, a], [bKey, b]) => {
    if (a.createdAt !== b.createdAt) return a.createdAt < b.createdAt ? 1 : -1;
    return aKey < bKey ? -1 : 1;
  });
  return { keys: entries.map(([key]) => key), rows: entries.map(([, row]) => row) };
}

/** Return the present rows in the previous order; null if one is gone, or was created anew. */
function updatedRows<T extends Created>(
  rows: ReadonlyMap<string, T>,
  { keys, rows: before }: CreationOrder<T>,
): readonly T[] | null {
  const updated: T[] = [];
  for (const [index, key] of keys.entries()) {
    const row = rows.get(key);
    if (row === undefined || row.createdAt !== before[index]?.createdAt) return null;
    updated.push(row);
  }
  return updated;
}

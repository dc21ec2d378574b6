import { useMemo, useState } from "react";

/** The keys of the rows in the order shown, and the arguments that led to it. */
type Shown = {
  readonly order: readonly string[];
  readonly wanted: readonly string[];
  readonly sorting: string;
};

/**
 * Keep rows in place while someone points at them or has the focus in them.
 *
 * `wanted` has the keys of the rows as they should be sorted. `sorting` names the way in which they
 * are; a change of it sorts at once. Rows that vanished are dropped and new ones are added below.
 * `waiting` counts the rows whose place would change, and `settle` sorts them at once.
 */
export function useStableOrder(wanted: readonly string[], isHeld: boolean, sorting: string) {
  const [shown, setShown] = useState<Shown>({ order: wanted, wanted, sorting });
  const next = nextShown(shown, wanted, isHeld, sorting);
  // Set while rendering, as React allows for state that follows from arguments and its last value.
  if (next !== shown) setShown(next);
  const { order } = next;
  const waiting = useMemo(() => countMoved(order, wanted), [order, wanted]);
  return { order, waiting, settle: () => setShown({ order: wanted, wanted, sorting }) };
}

/** Return the wanted order, or the shown one while rows are held; `shown` itself if it is right. */
function nextShown(
  shown: Shown,
  wanted: readonly string[],
  isHeld: boolean,
  sorting: string,
): Shown {
  if (!isHeld || shown.sorting !== sorting) {
    const isCurrent = shown.order === wanted && shown.sorting === sorting;
    return isCurrent ? shown : { order: wanted, wanted, sorting };
  }
  if (shown.wanted === wanted) return shown;
  return { order: keepOrder(shown.order, wanted), wanted, sorting };
}

export function keepOrder(shown: readonly string[], wanted: readonly string[]): readonly string[] {
  const wantedKeys = new Set(wanted);
  const remaining = shown.filter((key) => wantedKeys.has(key));
  const remainingKeys = new Set(remaining);
  return [...remaining, ...wanted.filter((key) => !remainingKeys.has(key))];
}

export function countMoved(shown: readonly string[], wanted: readonly string[]): number {
  let moved = 0;
  for (let index = 0; index < wanted.length; index++)
    if (shown[index] !== wanted[index]) moved += 1;
  return moved;
}

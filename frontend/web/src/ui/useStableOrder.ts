import { useRef, useState } from "react";

/**
 * Keep rows where they are while someone points at them or has the focus in them.
 *
 * Rows that vanished are dropped and new ones wait below; `waiting` counts the keys whose place
 * would change, and `settle` puts all in order at once.
 */
export function useStableOrder(wanted: readonly string[], isHeld: boolean, sorting: string) {
  const shown = useRef<readonly string[]>(wanted);
  const sortedBy = useRef(sorting);
  const [, rerender] = useState(0);
  if (!isHeld || sortedBy.current !== sorting) {
    shown.current = wanted;
    sortedBy.current = sorting;
  } else {
    shown.current = keepOrder(shown.current, wanted);
  }
  return {
    order: shown.current,
    waiting: countMoved(shown.current, wanted),
    settle: () => {
      shown.current = wanted;
      rerender((n) => n + 1);
    },
  };
}

export function keepOrder(shown: readonly string[], wanted: readonly string[]): readonly string[] {
  const alive = new Set(wanted);
  const kept = shown.filter((key) => alive.has(key));
  const known = new Set(kept);
  return [...kept, ...wanted.filter((key) => !known.has(key))];
}

export function countMoved(shown: readonly string[], wanted: readonly string[]): number {
  let moved = 0;
  for (let index = 0; index < wanted.length; index++)
    if (shown[index] !== wanted[index]) moved += 1;
  return moved;
}

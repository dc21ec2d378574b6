import { useState } from "react";
import { isSame } from "../model/same.ts";

/**
 * Return the previous value while the new one has the same structure.
 *
 * Rows change several times a second, but what is derived from them (names, parents) rarely does;
 * a stable identity keeps memoised work from being repeated.
 */
export function useUnchanged<T>(value: T): T {
  const [previous, setPrevious] = useState(value);
  if (isSame(previous, value)) return previous;
  setPrevious(value);
  return value;
}

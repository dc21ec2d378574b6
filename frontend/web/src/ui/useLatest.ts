import { type RefObject, useLayoutEffect, useRef } from "react";

/** Return a ref to the value of the latest commit, for event handlers that must keep their identity. */
export function useLatest<T>(value: T): RefObject<T> {
  const latest = useRef(value);
  useLayoutEffect(() => {
    latest.current = value;
  });
  return latest;
}

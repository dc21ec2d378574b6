import { useCallback, useMemo } from "react";
import { useTopic } from "./react.tsx";
import { useUnchanged } from "./useUnchanged.ts";

/** Return a function from a queue's name to its display name, or to the name if it has none. */
export function useQueueLabels(): (name: string) => string {
  const { rows } = useTopic("queues");
  const named = useMemo(
    () =>
      [...rows.values()]
        .filter((queue) => queue.displayName !== "")
        .map((queue): [string, string] => [queue.name, queue.displayName])
        .sort(([a], [b]) => (a < b ? -1 : 1)),
    [rows],
  );
  const unchanged = useUnchanged(named);
  const labels = useMemo(() => new Map(unchanged), [unchanged]);
  return useCallback((name) => labels.get(name) ?? name, [labels]);
}

import { useMemo } from "react";
import { assignHues, type Hue } from "../model/hues.ts";
import { useTopic } from "./react.tsx";
import { useUnchanged } from "./useUnchanged.ts";

/** Return the hue and pattern of every leaf queue. Parent queues have none: they hold no devices. */
export function useHues(): ReadonlyMap<string, Hue> {
  const { rows } = useTopic("queues");
  const leaves = useMemo(() => {
    const parents = new Set<string>();
    for (const queue of rows.values()) if (queue.parent) parents.add(queue.parent);
    return [...rows.values()]
      .filter((queue) => !parents.has(queue.name))
      .map(({ name, createdAt }) => ({ name, createdAt }))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  }, [rows]);
  const unchanged = useUnchanged(leaves);
  return useMemo(() => assignHues(unchanged), [unchanged]);
}

import { assignHues, type Hue } from "../model/hues.ts";
import type { Queue } from "../model/rows.ts";
import { isSame } from "../model/same.ts";
import { derivedOnce } from "./derived.ts";
import { useTopic } from "./react.tsx";

// A page may have a link to every queue, so no component derives this for itself.
const leavesOf = derivedOnce((rows: ReadonlyMap<string, Queue>) => {
  const parents = new Set<string>();
  for (const queue of rows.values()) if (queue.parent) parents.add(queue.parent);
  return [...rows.values()]
    .filter((queue) => !parents.has(queue.name))
    .map(({ name, createdAt }) => ({ name, createdAt }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}, isSame);
const huesOf = derivedOnce(assignHues);

/** Return the hue and pattern of every leaf queue. Parent queues have none: they hold no devices. */
export function useHues(): ReadonlyMap<string, Hue> {
  return huesOf(leavesOf(useTopic("queues").rows));
}

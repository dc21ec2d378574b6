import type { Queue } from "../model/rows.ts";
import { isSame } from "../model/same.ts";
import { derivedOnce } from "./derived.ts";
import { useTopic } from "./react.tsx";

const namedIn = derivedOnce(
  (rows: ReadonlyMap<string, Queue>) =>
    [...rows.values()]
      .filter((queue) => queue.displayName !== "")
      .map((queue): [string, string] => [queue.name, queue.displayName])
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  isSame,
);
const labelIn = derivedOnce((named: readonly [string, string][]) => {
  const labels = new Map(named);
  return (name: string) => labels.get(name) ?? name;
});

/** Return a function from a queue's name to its display name, or to the name if it has none. */
export function useQueueLabels(): (name: string) => string {
  return labelIn(namedIn(useTopic("queues").rows));
}

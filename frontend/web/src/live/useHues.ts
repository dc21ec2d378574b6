import { useMemo } from "react";
import { assignHues, type Hue } from "../model/hues.ts";
import { useTopic } from "./react.tsx";

/** Hue and pattern of every queue. Queues that hold others come last: only leaves hold devices. */
export function useHues(): ReadonlyMap<string, Hue> {
  const { rows } = useTopic("queues");
  const parents = new Set<string>();
  const signature: string[] = [];
  for (const queue of rows.values()) if (queue.parent) parents.add(queue.parent);
  for (const queue of rows.values()) {
    if (!parents.has(queue.name)) signature.push(`${queue.createdAt}\t${queue.name}`);
  }
  // Numbers move four times a second, hues only when a queue comes or goes.
  const key = signature.sort().join("\n");
  return useMemo(
    () =>
      assignHues(
        key === ""
          ? []
          : key.split("\n").map((line) => {
              const [createdAt = "", name = ""] = line.split("\t");
              return { createdAt, name };
            }),
      ),
    [key],
  );
}

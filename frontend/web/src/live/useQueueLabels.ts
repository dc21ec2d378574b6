import { useMemo } from "react";
import { useTopic } from "./react.tsx";

/** A queue's name as people call it: its display name, else its name. */
export function useQueueLabels(): (name: string) => string {
  const { rows } = useTopic("queues");
  const named = [...rows.values()].filter((queue) => queue.displayName !== "");
  const key = named.map((queue) => `${queue.name}\t${queue.displayName}`).join("\n");
  return useMemo(() => {
    const labels = new Map(key.split("\n").map((line) => line.split("\t") as [string, string]));
    return (name: string) => labels.get(name) ?? name;
  }, [key]);
}

import { useTopic } from "../../live/react.tsx";

/** Return the workloads of a queue and of all queues below it, live; the server sends no others. */
export function useWorkloadsBelow(queue: string) {
  const query = new URLSearchParams({ queue, subtree: "true" });
  return useTopic(`workloads?${query.toString()}`);
}

/** The order in which the scheduler serves waiting workloads. */
import type { Workload } from "./rows.ts";

export type Placed = Workload & {
  readonly position: number;
  /** Its place among the workloads of its own queue. */
  readonly inQueue: number;
};

/** Return the workloads that have a place, next one first, with their places in their queues. */
export function inOrder(workloads: Iterable<Workload>): Placed[] {
  const placed = [...workloads]
    .filter((row): row is Workload & { position: number } => row.position !== null)
    .sort((a, b) => a.position - b.position || (a.name < b.name ? -1 : 1));
  const counts = new Map<string, number>();
  return placed.map((row) => {
    const inQueue = (counts.get(row.queue) ?? 0) + 1;
    counts.set(row.queue, inQueue);
    return { ...row, inQueue };
  });
}

/** The matrix of evictions: who took room from whom, in GPUs. */
import type { EvictionMatrix } from "./rows.ts";

/** The evictions that one queue suffered for another by one rule, such as `reclaim` or `preempt`. */
export type EvictionSum = EvictionMatrix["items"][number];
type MatrixCell = {
  readonly gpu: number;
  readonly evictions: number;
  readonly pods: number;
};
export type Matrix = {
  /** The queues that got the room, and those that lost it; the largest first. */
  readonly evictors: readonly string[];
  readonly victims: readonly string[];
  readonly cell: (evictor: string, victim: string) => MatrixCell | undefined;
  readonly largest: number;
  /** How many queues were left out, and what is in their cells. */
  readonly hidden: { readonly queues: number; readonly gpu: number };
};

/** Return the matrix of the given rule ("" for all), with at most `most` queues on each side. */
export function matrixOf(sums: readonly EvictionSum[], rule: string, most: number): Matrix {
  const chosen = sums.filter((sum) => rule === "" || sum.rule === rule);
  const evictors = ranked(chosen, ({ evictorQueue }) => evictorQueue);
  const victims = ranked(chosen, ({ queue }) => queue);
  const shown = { evictors: evictors.slice(0, most), victims: victims.slice(0, most) };
  const cells = new Map<string, MatrixCell>();
  let hiddenGpu = 0;
  for (const { queue, evictorQueue, gpu, evictions, pods } of chosen) {
    if (!shown.evictors.includes(evictorQueue) || !shown.victims.includes(queue)) {
      hiddenGpu += gpu;
      continue;
    }
    const key = keyOf(evictorQueue, queue);
    const before = cells.get(key) ?? { gpu: 0, evictions: 0, pods: 0 };
    cells.set(key, {
      gpu: before.gpu + gpu,
      evictions: before.evictions + evictions,
      pods: before.pods + pods,
    });
  }
  const all = new Set([...evictors, ...victims]);
  const visible = new Set([...shown.evictors, ...shown.victims]);
  return {
    ...shown,
    cell: (evictor, victim) => cells.get(keyOf(evictor, victim)),
    largest: Math.max(0, ...[...cells.values()].map(({ gpu }) => gpu)),
    hidden: { queues: all.size - visible.size, gpu: hiddenGpu },
  };
}

function keyOf(evictor: string, victim: string): string {
  return JSON.stringify([evictor, victim]);
}

function ranked(sums: readonly EvictionSum[], name: (sum: EvictionSum) => string): string[] {
  const totals = new Map<string, number>();
  for (const sum of sums) totals.set(name(sum), (totals.get(name(sum)) ?? 0) + sum.gpu);
  return [...totals.keys()].sort(
    (a, b) => (totals.get(b) ?? 0) - (totals.get(a) ?? 0) || (a < b ? -1 : 1),
  );
}

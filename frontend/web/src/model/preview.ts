/** The moves of a preview, summed up by workload: a gang of 64 pods is one line. */
import type { Preview } from "./rows.ts";

export type Moved = {
  readonly workload: string;
  readonly queue: string;
  readonly pods: number;
  readonly gpus: number;
  /** For whom pods are evicted; null for starts, and where no workload asks for the room. */
  readonly evictor: string | null;
  /** The rule, as the event of an evicted pod will state it. */
  readonly rule: string;
  /** Whether all of it happens without the edits too. */
  readonly isAnyway: boolean;
};

type Row = Preview["starts"][number] & { readonly evictor?: string | null; readonly rule?: string };

/** Return one entry per workload, what the edits cause first, then in the order of the decisions. */
export function byWorkload(rows: readonly Row[]): Moved[] {
  const moved = new Map<string, Moved>();
  for (const row of rows) {
    const before = moved.get(row.workload);
    moved.set(row.workload, {
      workload: row.workload,
      queue: row.queue,
      pods: (before?.pods ?? 0) + 1,
      gpus: (before?.gpus ?? 0) + row.gpu,
      evictor: before?.evictor ?? row.evictor ?? null,
      rule: before?.rule ?? row.rule ?? "",
      isAnyway: (before?.isAnyway ?? true) && row.withoutEdits,
    });
  }
  return [...moved.values()].sort((a, b) => Number(a.isAnyway) - Number(b.isAnyway));
}

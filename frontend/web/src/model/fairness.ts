/** How fairly siblings hold what they divide: allocated amounts measured by the fair share. */
import { groupBy } from "./group.ts";
import type { Queue, Resource } from "./rows.ts";

export type FairRow = {
  readonly queue: Queue;
  readonly allocated: number;
  readonly share: number;
  /** Allocated by share; null for a queue without a share. */
  readonly ratio: number | null;
  /** What it lacks of what it requests and is entitled to; negative: what it holds beyond its share. */
  readonly missing: number;
};
export type FairGroup = { readonly parent: string | null; readonly rows: readonly FairRow[] };
export type Borrowing = { readonly from: string; readonly to: string; readonly amount: number };

/** Return the groups of siblings that hold or want something, each with its most starved queue first. */
export function fairGroups(queues: Iterable<Queue>, resource: Resource): FairGroup[] {
  const byParent = groupBy(queues, ({ parent }) => parent);
  const groups: FairGroup[] = [];
  for (const [parent, siblings] of byParent) {
    const rows = siblings
      .map((queue) => fairRow(queue, resource))
      .filter(({ allocated, share }) => allocated > 0 || share > 0)
      .sort(
        (a, b) =>
          (a.ratio ?? Number.POSITIVE_INFINITY) - (b.ratio ?? Number.POSITIVE_INFINITY) ||
          (a.queue.name < b.queue.name ? -1 : 1),
      );
    if (rows.length > 0) groups.push({ parent, rows });
  }
  return groups.sort((a, b) => ((a.parent ?? "") < (b.parent ?? "") ? -1 : 1));
}

/** Return who holds what others of the group lack: the largest amounts are matched first. */
export function borrowings({ rows }: FairGroup): Borrowing[] {
  const lacking = rows
    .filter(({ missing }) => missing > 0)
    .map(({ queue, missing }) => ({ name: queue.name, left: missing }))
    .sort((a, b) => b.left - a.left);
  const holding = rows
    .filter(({ missing }) => missing < 0)
    .map(({ queue, missing }) => ({ name: queue.name, left: -missing }))
    .sort((a, b) => b.left - a.left);
  const pairs: Borrowing[] = [];
  for (const to of lacking) {
    for (const from of holding) {
      const amount = Math.min(to.left, from.left);
      if (amount <= 0) continue;
      pairs.push({ from: from.name, to: to.name, amount });
      to.left -= amount;
      from.left -= amount;
    }
  }
  return pairs;
}

function fairRow(queue: Queue, resource: Resource): FairRow {
  const allocated = queue.allocated[resource];
  const share = queue.share?.[resource] ?? 0;
  const entitled = Math.min(share, queue.requested[resource]);
  const missing = allocated > share ? share - allocated : Math.max(0, entitled - allocated);
  return { queue, allocated, share, ratio: share > 0 ? allocated / share : null, missing };
}

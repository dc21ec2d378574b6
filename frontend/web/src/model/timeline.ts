/** The story of a workload: what kaiweb recorded about it and the cluster's events, in one order. */
import type { Eviction, Workload, WorkloadEvent } from "./rows.ts";

export type Moment =
  | { readonly at: string; readonly kind: "created" | "started" }
  | { readonly at: string; readonly kind: "evicted"; readonly eviction: Eviction }
  | { readonly at: string; readonly kind: "event"; readonly event: WorkloadEvent };

/** Return the moments, newest first; an event without a time is left out. */
export function timelineOf(
  { createdAt, startedAt }: Pick<Workload, "createdAt" | "startedAt">,
  evictions: readonly Eviction[],
  events: readonly WorkloadEvent[],
): Moment[] {
  const moments: Moment[] = [{ at: createdAt, kind: "created" }];
  if (startedAt !== null) moments.push({ at: startedAt, kind: "started" });
  for (const eviction of evictions) moments.push({ at: eviction.at, kind: "evicted", eviction });
  for (const event of events)
    if (event.lastSeen !== null) moments.push({ at: event.lastSeen, kind: "event", event });
  return moments.sort((a, b) => Date.parse(b.at) - Date.parse(a.at));
}

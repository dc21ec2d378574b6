/** Marks on the time axis of a history: what was changed and evicted, and in which step. */
import type { AuditEntry, Eviction } from "./rows.ts";

type MarkKind = "edit" | "eviction";
export type Happening =
  | { readonly kind: "edit"; readonly at: string; readonly entry: AuditEntry }
  | { readonly kind: "eviction"; readonly at: string; readonly eviction: Eviction };
export type Mark = {
  readonly kind: MarkKind;
  readonly index: number;
  readonly happenings: readonly Happening[];
};

/** Return what was written and evicted, newest first; writes that failed changed nothing. */
export function happeningsOf(
  entries: readonly AuditEntry[],
  evictions: readonly Eviction[],
): Happening[] {
  const edits = entries
    .filter(({ state }) => state !== "failed")
    .map((entry): Happening => ({ kind: "edit", at: entry.at, entry }));
  const evicted = evictions.map(
    (eviction): Happening => ({ kind: "eviction", at: eviction.at, eviction }),
  );
  return [...edits, ...evicted].sort((a, b) => Date.parse(b.at) - Date.parse(a.at));
}

/** Return one mark for each kind and step in which something of it happened. */
export function marksOf(
  happenings: readonly Happening[],
  times: readonly string[],
  stepSeconds: number,
): Mark[] {
  const start = Date.parse(times[0] ?? "");
  const marks = new Map<string, Mark>();
  for (const happening of happenings) {
    const index = Math.floor((Date.parse(happening.at) - start) / (stepSeconds * 1_000));
    if (!(index >= 0 && index < times.length)) continue;
    const key = `${happening.kind} ${index}`;
    const before = marks.get(key)?.happenings ?? [];
    marks.set(key, { kind: happening.kind, index, happenings: [...before, happening] });
  }
  return [...marks.values()];
}

/**
 * The life of one queue edit, as a reducer.
 *
 *   clean ── typed ──▶ editing ── sent ──▶ saving ── accepted ──▶ awaited ── row arrived ──▶ clean
 *     ▲                 │   ▲                │ │                    │
 *     └──── undone ─────┘   └──── failed ────┘ └── conflicted ──▶ conflicted
 *
 * The live row may change at any time. Fields that the user did not touch follow it; a field that
 * both sides changed keeps its old base, so that saving detects the conflict and asks.
 */
import type { Queue, QueuePatch } from "./rows.ts";
import {
  changedPointers,
  type Entries,
  type Entry,
  editableValues,
  entriesOf,
  isOlder,
  mergeValues,
  type Pointer,
  patchOf,
  type Reading,
  readEntries,
  readEntry,
  type Value,
  type Values,
} from "./values.ts";

/** One version of the queue's editable fields. */
export type Version = { readonly values: Values; readonly etag: string };

export type Conflict = {
  readonly pointers: readonly Pointer[];
  readonly base: Values;
  readonly theirs: Values;
  readonly mine: Values;
  /** The server's version, which a resolved conflict is saved against. */
  readonly current: Version;
};

export type Failure = { readonly title: string; readonly detail: string };

/** What the server accepted, until the live row shows it. */
export type Saved = {
  readonly etag: string;
  readonly changed: boolean;
  /** The patch that sets back the fields that this save changed. */
  readonly inverse: QueuePatch;
};

export type Phase =
  | { readonly kind: "clean" }
  | { readonly kind: "editing" }
  | { readonly kind: "saving"; readonly sent: Values; readonly isSlow: boolean }
  | { readonly kind: "conflicted"; readonly conflict: Conflict }
  | { readonly kind: "awaited"; readonly saved: Saved; readonly isSlow: boolean };

export type Editing = {
  /** The version that the entries are compared with. */
  readonly base: Version;
  /** The newest version that the live row has shown. */
  readonly row: Version;
  readonly entries: Entries;
  readonly phase: Phase;
  /** Why the last save failed, until the next one starts. */
  readonly failure: Failure | null;
  /** The last save that the live row has shown; a new object for every save. */
  readonly completed: Saved | null;
};

export type Action =
  | { readonly type: "typed"; readonly pointer: Pointer; readonly entry: Entry }
  | { readonly type: "undone" }
  | { readonly type: "sent"; readonly from: Version; readonly values: Values }
  | { readonly type: "accepted"; readonly version: Version; readonly changed: boolean }
  | { readonly type: "conflicted"; readonly conflict: Conflict }
  | { readonly type: "conflictClosed" }
  | { readonly type: "failed"; readonly failure: Failure }
  | { readonly type: "slow" }
  | { readonly type: "rowArrived"; readonly row: Version };

const UNSET: Entry = { kind: "unset", text: "" };

export function versionOf(queue: Queue): Version {
  return { values: editableValues(queue), etag: queue.etag };
}

export function startEditing(row: Version): Editing {
  const entries = entriesOf(row.values);
  return { base: row, row, entries, phase: { kind: "clean" }, failure: null, completed: null };
}

/** Read the entries: their values, the fields that differ from the base, and the unreadable ones. */
export function readEditing({ base, entries }: Editing): Reading & { changed: Pointer[] } {
  const reading = readEntries(entries);
  return { ...reading, changed: changedPointers(base.values, reading.values) };
}

export function reduce(editing: Editing, action: Action): Editing {
  switch (action.type) {
    case "typed":
      return touched(editing, new Map([...editing.entries, [action.pointer, action.entry]]));
    case "undone":
      return touched(editing, entriesOf(editing.base.values));
    case "sent":
      return {
        ...editing,
        base: action.from,
        entries: entriesWith(editing.entries, action.values),
        phase: { kind: "saving", sent: action.values, isSlow: false },
        failure: null,
      };
    case "accepted":
      return accepted(editing, action.version, action.changed);
    case "conflicted":
      return { ...editing, phase: { kind: "conflicted", conflict: action.conflict } };
    case "conflictClosed":
      return followRow(editable(editing));
    case "failed":
      return followRow({ ...editable(editing), failure: action.failure });
    case "slow":
      return slow(editing);
    case "rowArrived":
      return followRow(completedBy({ ...editing, row: action.row }));
  }
}

/** Take new entries; an edit that is being saved or awaited stays in its phase. */
function touched(editing: Editing, entries: Entries): Editing {
  const next = { ...editing, entries };
  const isOpen = editing.phase.kind === "clean" || editing.phase.kind === "editing";
  return followRow(isOpen ? editable(next) : next);
}

/** Go to `clean` or `editing`, whichever the entries say. */
function editable(editing: Editing): Editing {
  const { changed, errors } = readEditing(editing);
  const kind = changed.length === 0 && errors.size === 0 ? "clean" : "editing";
  return { ...editing, phase: { kind } };
}

/** The server took the values: they are the new base. What was typed meanwhile stays a change. */
function accepted(editing: Editing, version: Version, changed: boolean): Editing {
  const { phase } = editing;
  const sent = phase.kind === "saving" ? phase.sent : version.values;
  const typedMeanwhile = [...editing.entries].filter(
    ([pointer, entry]) => !saysValue(pointer, entry, sent),
  );
  const entries: Entries = new Map([...entriesOf(version.values), ...typedMeanwhile]);
  const inverse = inverseOf(editing.base.values, sent, version.values);
  const saved: Saved = { etag: version.etag, changed, inverse };
  const awaited: Phase = { kind: "awaited", saved, isSlow: false };
  return followRow(completedBy({ ...editing, base: version, entries, phase: awaited }));
}

/** Return the patch that takes back what was sent, and leaves what others have changed meanwhile. */
function inverseOf(before: Values, sent: Values, accepted: Values): QueuePatch {
  const undone = changedPointers(before, sent).map((pointer): [Pointer, Value] => [
    pointer,
    before.get(pointer),
  ]);
  return patchOf(accepted, new Map([...accepted, ...undone]));
}

/** End the waiting once the live row is at least as new as what the server accepted. */
function completedBy(editing: Editing): Editing {
  const { phase, row } = editing;
  if (phase.kind !== "awaited" || isOlder(row.etag, phase.saved.etag)) return editing;
  return editable({ ...editing, completed: phase.saved });
}

/** Take over what others changed in fields that the user did not touch. */
function followRow(editing: Editing): Editing {
  const { base, row, phase } = editing;
  const isBusy = phase.kind === "saving" || phase.kind === "conflicted";
  if (isBusy || row.etag === base.etag || isOlder(row.etag, base.etag)) return editing;
  const { values, changed, errors } = readEditing(editing);
  const mine = new Map([...base.values, ...values]);
  if (mergeValues(base.values, row.values, mine).conflicts.length > 0) return editing;
  const fresh = entriesOf(row.values);
  const followed = changedPointers(base.values, row.values).filter(
    (pointer) => !changed.includes(pointer) && !errors.has(pointer),
  );
  const entries = new Map(editing.entries);
  for (const pointer of followed) entries.set(pointer, fresh.get(pointer) ?? UNSET);
  const next = { ...editing, base: row, entries };
  return phase.kind === "awaited" ? next : editable(next);
}

function slow(editing: Editing): Editing {
  const { phase } = editing;
  if (phase.kind !== "saving" && phase.kind !== "awaited") return editing;
  return { ...editing, phase: { ...phase, isSlow: true } };
}

/** Replace the entries that say something else than these values. */
function entriesWith(entries: Entries, values: Values): Entries {
  const wanted = entriesOf(values);
  return new Map(
    [...entries].map(([pointer, entry]) => [
      pointer,
      !values.has(pointer) || saysValue(pointer, entry, values)
        ? entry
        : (wanted.get(pointer) ?? entry),
    ]),
  );
}

/** Return whether an entry reads as the value that `values` has for it. */
function saysValue(pointer: Pointer, entry: Entry, values: Values): boolean {
  const result = readEntry(pointer, entry);
  return typeof result !== "string" && result.value === values.get(pointer);
}

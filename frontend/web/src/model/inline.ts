/** Values that are edited in their cells of the queue tree. */
import type { DraftEdit } from "./draft.ts";
import type { Bound, Queue, QueuePatch, Resource } from "./rows.ts";
import {
  type EntryProblem,
  editableValues,
  entryOf,
  type Pointer,
  patchOf,
  readEntry,
  splitPointer,
  type Value,
} from "./values.ts";

const UNLIMITED = /^(unlimited|∞)$/i;
const UNSET = /^(unset|–|-)?$/i;

/** The fields that have cells, in the order of the columns. */
export function inlinePointers(resource: Resource): readonly Pointer[] {
  return [`/quota/${resource}`, `/limit/${resource}`, `/weight/${resource}`, "/priority"];
}

/** Return the field beside another one, or null at the end of the row. */
export function beside(pointer: Pointer, resource: Resource, step: 1 | -1): Pointer | null {
  const pointers = inlinePointers(resource);
  return pointers[pointers.indexOf(pointer) + step] ?? null;
}

export function valueIn(queue: Queue, pointer: Pointer): Value {
  const at = splitPointer(pointer);
  return at === null ? (queue.priority ?? undefined) : queue[at.part][at.resource];
}

/** Return what a draft gives a field: null where it unsets it, undefined where it leaves it. */
export function draftedValue(
  drafted: DraftEdit | undefined,
  pointer: Pointer,
): Bound | null | undefined {
  const edit = drafted?.edit;
  const at = splitPointer(pointer);
  if (edit === undefined) return undefined;
  return at === null ? edit.priority : edit[at.part]?.[at.resource];
}

/** Return the patch that gives a field of a draft the value that the queue has. */
export function patchBack(queue: Queue, pointer: Pointer, drafted: Bound | null): QueuePatch {
  const base = new Map([[pointer, drafted ?? undefined]]);
  return patchOf(base, new Map([[pointer, valueIn(queue, pointer)]]));
}

/** Return the text that a cell starts with. */
export function inlineText(pointer: Pointer, value: Value): string {
  const entry = entryOf(pointer, value);
  return entry.kind === "unlimited" ? "unlimited" : entry.text;
}

/** Read a cell: the patch that makes the queue so, null if that changes nothing, or why it cannot be read. */
export function readInline(
  queue: Queue,
  pointer: Pointer,
  text: string,
): QueuePatch | null | EntryProblem {
  const trimmed = text.trim();
  const at = splitPointer(pointer);
  const isBound = at !== null && at.part !== "weight";
  const kind = UNSET.test(trimmed)
    ? "unset"
    : isBound && UNLIMITED.test(trimmed)
      ? "unlimited"
      : "value";
  const result = readEntry(pointer, { kind, text: trimmed });
  if (typeof result === "string") return result;
  const base = editableValues(queue);
  const patch = patchOf(base, new Map([...base, [pointer, result.value]]));
  return Object.keys(patch).length === 0 ? null : patch;
}

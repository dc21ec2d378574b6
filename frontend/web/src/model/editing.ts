/**
 * Editing a queue: its editable fields as a flat map, what a person changed, and the merge of two
 * people's changes. A field is named by its JSON pointer, the same name the server's errors use.
 */
import { type Bound, type Queue, type QueuePatch, RESOURCES, type Resource } from "./rows.ts";
import { bound, fromShown, RESOURCE_NAME, toShown } from "./units.ts";

export type Part = "quota" | "limit" | "weight";
export type Pointer = "/priority" | `/${Part}/${Resource}`;
/** undefined = unset. */
export type Value = Bound | undefined;
export type Values = ReadonlyMap<Pointer, Value>;

export const PARTS: readonly Part[] = ["quota", "limit", "weight"];
export const POINTERS: readonly Pointer[] = [
  "/priority",
  ...RESOURCES.flatMap((resource) => PARTS.map((part): Pointer => `/${part}/${resource}`)),
];

const PART_NAME: Record<Part, string> = {
  quota: "quota",
  limit: "limit",
  weight: "over-quota weight",
};

export function splitPointer(pointer: Pointer): { part: Part; resource: Resource } | null {
  const [, part, resource] = pointer.split("/");
  return resource === undefined ? null : { part: part as Part, resource: resource as Resource };
}

export function fieldName(pointer: Pointer): string {
  const at = splitPointer(pointer);
  return at === null ? "Priority" : `${RESOURCE_NAME[at.resource]} ${PART_NAME[at.part]}`;
}

/** A value in words, in the unit people type. */
export function valueWords(pointer: Pointer, value: Value): string {
  const at = splitPointer(pointer);
  if (at === null || at.part === "weight") return value === undefined ? "unset" : String(value);
  return bound(at.resource, value);
}

export function editableValues(queue: Queue): Values {
  const values = new Map<Pointer, Value>([["/priority", queue.priority ?? undefined]]);
  for (const resource of RESOURCES) {
    for (const part of PARTS) values.set(`/${part}/${resource}`, queue[part][resource]);
  }
  return values;
}

/** What a person sees and types for one field: a choice, and the text of the number. */
export type Entry = { readonly kind: "value" | "unlimited" | "unset"; readonly text: string };
export type Entries = ReadonlyMap<Pointer, Entry>;

export function entryOf(pointer: Pointer, value: Value): Entry {
  if (value === undefined) return { kind: "unset", text: "" };
  if (value === "unlimited") return { kind: "unlimited", text: "" };
  const at = splitPointer(pointer);
  const shown = at === null || at.part === "weight" ? value : toShown(at.resource, value);
  return { kind: "value", text: String(shown) };
}

export function entriesOf(values: Values): Entries {
  return new Map(POINTERS.map((pointer) => [pointer, entryOf(pointer, values.get(pointer))]));
}

/** Read one entry; a string is why it cannot be read. */
export function readEntry(pointer: Pointer, entry: Entry): { value: Value } | string {
  if (entry.kind === "unset") return { value: undefined };
  if (entry.kind === "unlimited") return { value: "unlimited" };
  const text = entry.text.trim();
  const isBound = pointer.startsWith("/quota") || pointer.startsWith("/limit");
  if (text === "") {
    return isBound ? "Enter a number, or choose unlimited or unset." : { value: undefined };
  }
  if (!/^-?\d*\.?\d+$/.test(text)) return `"${text}" is not a number.`;
  const number = Number(text);
  const at = splitPointer(pointer);
  if (at === null)
    return Number.isInteger(number) ? { value: number } : "A priority is a whole number.";
  if (number < 0) return "Must not be negative.";
  if (!/^\d*(\.\d{1,3})?$/.test(text)) return "At most three decimal places.";
  return { value: at.part === "weight" ? number : fromShown(at.resource, number) };
}

export type Reading = { readonly values: Values; readonly errors: ReadonlyMap<Pointer, string> };

export function readEntries(entries: Entries): Reading {
  const values = new Map<Pointer, Value>();
  const errors = new Map<Pointer, string>();
  for (const [pointer, entry] of entries) {
    const read = readEntry(pointer, entry);
    if (typeof read === "string") errors.set(pointer, read);
    else values.set(pointer, read.value);
  }
  return { values, errors };
}

export function changedPointers(base: Values, mine: Values): Pointer[] {
  return POINTERS.filter((pointer) => mine.has(pointer) && mine.get(pointer) !== base.get(pointer));
}

export type Merge = {
  /** Both sides' changes together; on a conflict, mine. */
  readonly merged: Values;
  readonly conflicts: readonly Pointer[];
};

/** Three-way merge, field by field: what only one side changed is not asked about. */
export function mergeValues(base: Values, theirs: Values, mine: Values): Merge {
  const merged = new Map<Pointer, Value>();
  const conflicts: Pointer[] = [];
  for (const pointer of POINTERS) {
    const [was, their, my] = [base.get(pointer), theirs.get(pointer), mine.get(pointer)];
    merged.set(pointer, my === was ? their : my);
    if (my !== was && their !== was && my !== their) conflicts.push(pointer);
  }
  return { merged, conflicts };
}

/** The merge patch that turns `base` into `mine`; null in it means unset. */
export function patchOf(base: Values, mine: Values): QueuePatch {
  const patch: Record<string, unknown> = {};
  for (const pointer of changedPointers(base, mine)) {
    const value = mine.get(pointer) ?? null;
    const at = splitPointer(pointer);
    if (at === null) patch.priority = value;
    else patch[at.part] = { ...(patch[at.part] as object | undefined), [at.resource]: value };
  }
  return patch as QueuePatch;
}

/**
 * Whether one version of a queue is older than another. An ETag begins with the generation, which only
 * grows while the queue lives; anything else cannot be compared and counts as not older.
 */
export function isOlder(etag: string, than: string): boolean {
  const [left, right] = [etag, than].map((text) => /^"(\d+)(?:-\w+)?"$/.exec(text)?.[1]);
  return left !== undefined && right !== undefined && BigInt(left) < BigInt(right);
}

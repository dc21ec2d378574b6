/**
 * The editable fields of a queue as a flat map, the form entries that show them, and the three-way
 * merge of two people's changes. A field is named by its JSON pointer, as in the server's errors.
 */

import { readAmountText } from "./amountText.ts";
import { modelsText, readModels } from "./gpuModels.ts";
import { type Bound, type Queue, type QueuePatch, RESOURCES, type Resource } from "./rows.ts";
import { toShown } from "./units.ts";

/** The text of an option that is on. */
export const YES = "yes";

export type Part = "quota" | "limit" | "weight";
/**
 * Fields that hold a text: a name for people, durations such as `5m`, labels such as `team=a, cost=7`, `yes` for
 * fairness among users, and bounds per GPU model such as `A100=4/8` (quota/limit).
 */
export const TEXT_FIELDS = [
  "displayName",
  "preemptMinRuntime",
  "reclaimMinRuntime",
  "maxRunTime",
  "requeueDelay",
  "labels",
  "userFairness",
  "gpuModels",
] as const;
export type TextField = (typeof TEXT_FIELDS)[number];
export type Pointer = "/priority" | `/${TextField}` | `/${Part}/${Resource}`;
/** The value of one field; undefined means unset. */
export type Value = Bound | string | undefined;
export type Values = ReadonlyMap<Pointer, Value>;

export const PARTS: readonly Part[] = ["quota", "limit", "weight"];
export const POINTERS: readonly Pointer[] = [
  "/displayName",
  "/priority",
  "/preemptMinRuntime",
  "/reclaimMinRuntime",
  "/maxRunTime",
  "/requeueDelay",
  "/labels",
  "/userFairness",
  "/gpuModels",
  ...RESOURCES.flatMap((resource) => PARTS.map((part): Pointer => `/${part}/${resource}`)),
];

export function splitPointer(pointer: Pointer): { part: Part; resource: Resource } | null {
  const [, part, resource] = pointer.split("/");
  return resource === undefined ? null : { part: part as Part, resource: resource as Resource };
}

/** Return the text field that a pointer names, or null. */
export function textField(pointer: Pointer): TextField | null {
  return TEXT_FIELDS.find((field) => pointer === `/${field}`) ?? null;
}

export function editableValues(queue: Queue): Values {
  const values = new Map<Pointer, Value>([["/priority", queue.priority ?? undefined]]);
  for (const field of TEXT_FIELDS) {
    values.set(`/${field}`, textOf(queue, field) || undefined);
  }
  for (const resource of RESOURCES) {
    for (const part of PARTS) values.set(`/${part}/${resource}`, queue[part][resource]);
  }
  return values;
}

function textOf(queue: Queue, field: TextField): string | null {
  if (field === "labels") return labelsText(queue.labels);
  if (field === "gpuModels") return modelsText(queue.gpuModels);
  if (field === "userFairness") return queue.userFairness ? YES : "";
  return queue[field];
}

/** What the form shows for one field: the choice, and the text of the number. */
export type Entry = { readonly kind: "value" | "unlimited" | "unset"; readonly text: string };
export type Entries = ReadonlyMap<Pointer, Entry>;

export function entryOf(pointer: Pointer, value: Value): Entry {
  if (value === undefined) return { kind: "unset", text: "" };
  if (typeof value === "string" && textField(pointer) !== null)
    return { kind: "value", text: value };
  if (value === "unlimited") return { kind: "unlimited", text: "" };
  const at = splitPointer(pointer);
  const isPlain = typeof value === "string" || at === null || at.part === "weight";
  const shown = isPlain ? value : toShown(at.resource, value);
  return { kind: "value", text: String(shown) };
}

export function entriesOf(values: Values): Entries {
  return new Map(POINTERS.map((pointer) => [pointer, entryOf(pointer, values.get(pointer))]));
}

/** Why an entry cannot be read. */
export type EntryProblem =
  | "missing"
  | "notANumber"
  | "notWhole"
  | "negative"
  | "tooPrecise"
  | "ambiguous"
  | "notLabels"
  | "notModels";

/** Read one entry: return its value, or why it has none. */
export function readEntry(pointer: Pointer, entry: Entry): { value: Value } | EntryProblem {
  if (entry.kind === "unset") return { value: undefined };
  if (entry.kind === "unlimited") return { value: "unlimited" };
  const text = entry.text.trim();
  if (pointer === "/labels") {
    const labels = readLabels(text);
    return labels === null ? "notLabels" : { value: labelsText(labels) || undefined };
  }
  if (pointer === "/gpuModels") {
    const models = readModels(text);
    return models === null ? "notModels" : { value: modelsText(models) || undefined };
  }
  if (textField(pointer) !== null) return { value: text === "" ? undefined : text };
  const isBound = pointer.startsWith("/quota") || pointer.startsWith("/limit");
  if (text === "") return isBound ? "missing" : { value: undefined };
  const at = splitPointer(pointer);
  if (at !== null && at.part !== "weight") {
    const amount = readAmountText(at.resource, text);
    return typeof amount === "string" ? amount : { value: amount };
  }
  if (!/^-?\d*\.?\d+$/.test(text)) return "notANumber";
  const number = Number(text);
  if (at === null) return Number.isInteger(number) ? { value: number } : "notWhole";
  if (number < 0) return "negative";
  if (!/^\d*(\.\d{1,3})?$/.test(text)) return "tooPrecise";
  return { value: number };
}

type Labels = Readonly<Record<string, string>>;

/** Return labels as one text, sorted, so that equal labels are equal texts. */
function labelsText(labels: Labels): string {
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .sort()
    .join(", ");
}

/** Read `key=value` pairs between commas or spaces; null if there is anything else. */
function readLabels(text: string): Labels | null {
  const pairs = text.split(/[,\s]+/).filter(Boolean);
  if (!pairs.every((pair) => /^[^=]+=[^=]*$/.test(pair))) return null;
  return Object.fromEntries(pairs.map((pair) => pair.split("=") as [string, string]));
}

/** Return the labels to set, and null for those to remove. */
function labelsPatch(before: Value, after: Value): Record<string, string | null> {
  const [old, wanted] = [before, after].map((text) => readLabels(String(text ?? "")) ?? {});
  const patch: Record<string, string | null> = {};
  for (const key of Object.keys(old ?? {})) if (wanted?.[key] === undefined) patch[key] = null;
  for (const [key, value] of Object.entries(wanted ?? {}))
    if (old?.[key] !== value) patch[key] = value;
  return patch;
}

export type Reading = {
  readonly values: Values;
  readonly errors: ReadonlyMap<Pointer, EntryProblem>;
};

export function readEntries(entries: Entries): Reading {
  const values = new Map<Pointer, Value>();
  const errors = new Map<Pointer, EntryProblem>();
  for (const [pointer, entry] of entries) {
    const result = readEntry(pointer, entry);
    if (typeof result === "string") errors.set(pointer, result);
    else values.set(pointer, result.value);
  }
  return { values, errors };
}

export function changedPointers(base: Values, mine: Values): Pointer[] {
  return POINTERS.filter((pointer) => mine.has(pointer) && mine.get(pointer) !== base.get(pointer));
}

export type Merge = {
  /** Both sides' changes; in a conflict, mine. */
  readonly merged: Values;
  readonly conflicts: readonly Pointer[];
};

/** Merge three ways, field by field. A field conflicts only if both sides changed it differently. */
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
    if (pointer === "/labels") {
      patch.labels = labelsPatch(base.get(pointer), mine.get(pointer));
    } else if (pointer === "/gpuModels") {
      patch.gpuModels = value === null ? null : readModels(String(value));
    } else if (pointer === "/userFairness") patch.userFairness = value === YES;
    else if (at === null) patch[pointer.slice(1)] = value;
    else patch[at.part] = { ...(patch[at.part] as object | undefined), [at.resource]: value };
  }
  return patch as QueuePatch;
}

/**
 * Return whether one version of a queue is older than another. An ETag begins with the generation,
 * which grows with every edit; ETags of any other form count as not older.
 */
export function isOlder(etag: string, than: string): boolean {
  const [left, right] = [etag, than].map((text) => /^"(\d+)(?:-\w+)?"$/.exec(text)?.[1]);
  return left !== undefined && right !== undefined && BigInt(left) < BigInt(right);
}

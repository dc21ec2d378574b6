/** Texts of the queues page: the tree, the drawer and its form. */
import type { Resource } from "../model/rows.ts";
import {
  type EntryProblem,
  type Part,
  type Pointer,
  splitPointer,
  type Value,
} from "../model/values.ts";
import { amount, bound, count, plural, RESOURCE_NAME, UNIT } from "./numbers.ts";

export const QUEUES = {
  title: "Queues",
  count: (queues: number) => plural(queues, "queue"),
  hierarchy: "Queue hierarchy",
  tree: "Queues",
  resource: "Resource",
  scale: (resource: Resource) => `In ${UNIT[resource]}. Bars of sibling queues share one scale.`,
  emptyTitle: "No queues yet",
  empty: "Create one with {kubectl} or {rest}.",
  kubectl: "kubectl apply",
  rest: "POST /api/v1/queues",
  parentMissing: (parent: string | null) =>
    `Its parent queue "${parent}" does not exist: create it, or choose another parent.`,
  edit: (queue: string) => `Edit ${queue}`,
} as const;

export const QUEUE_COLUMNS = {
  name: "Queue",
  quota: "Quota",
  limit: "Limit",
  weight: "Weight",
  priority: "Priority",
  share: "Fair share",
  allocated: "Allocated",
  bar: "Usage vs. limit",
  pending: "Pending",
  edit: "Edit",
} as const;

export const FACTS = {
  name: "Name",
  parent: "Parent",
  topLevel: "none (top-level queue)",
  workloads: "Workloads",
  workloadCounts: (running: number, pending: number) =>
    `${count(running)} running, ${count(pending)} pending`,
  created: "Created",
  resource: (resource: Resource, allocated: number, requested: number, share: number | null) =>
    [
      `${amount(resource, allocated)} of ${amount(resource, requested)} requested ${UNIT[resource]} allocated`,
      `fair share ${share === null ? "not computed yet" : amount(resource, share)}`,
    ].join(" · "),
} as const;

export const FORM = {
  order: "Order",
  choices: { value: "Value", unlimited: "Unlimited", unset: "Unset" },
  kind: (field: string) => `${field}: kind`,
  noChanges: "No changes",
  changes: (fields: number) => `${plural(fields, "field")} changed`,
  corrections: (fields: number) => `Correct ${plural(fields, "field")} before saving`,
  saving: "Saving…",
  savingSlow: "The server has not answered yet. Your changes are kept.",
  awaiting: "Accepted. Waiting for the cluster to confirm…",
  awaitingSlow:
    "Accepted, but this page does not show it yet. The data shown may be out of date: see the live indicator.",
  undo: "Undo changes",
  save: "Save",
  saved: "Saved",
  savedText: (queue: string) => `Queue ${queue}: the cluster has the new values.`,
  unneeded: "Nothing to change",
  unneededText: (queue: string) => `Queue ${queue}: the cluster already had these values.`,
  dismiss: "Dismiss",
  rejected: "The server would reject this change",
  viewer: "You can view queues but not edit them. Ask an administrator for the right to edit.",
  managedElsewhere: (owner: string) => `${owner} manages this queue. Edit it there.`,
} as const;

export const CONFLICT = {
  title: "Someone else changed this queue",
  text: "You both changed these fields. Choose which value to keep. All other changes, yours and theirs, are kept.",
  field: "Field",
  before: "Before",
  theirs: "Theirs",
  mine: "Mine",
  keep: "Keep",
  keepFor: (field: string) => `Keep for ${field}`,
  keepEditing: "Keep editing",
  save: "Save the merged queue",
} as const;

const PART_NAME: Record<Part, string> = {
  quota: "quota",
  limit: "limit",
  weight: "over-quota weight",
};
const SHORT_PART_NAME: Record<Part, string> = { quota: "Quota", limit: "Limit", weight: "Weight" };

/** The full name of a field: `GPU quota`. */
export function fieldName(pointer: Pointer): string {
  const at = splitPointer(pointer);
  return at === null ? "Priority" : `${RESOURCE_NAME[at.resource]} ${PART_NAME[at.part]}`;
}

/** The name of a field below the heading of its resource: `Quota`. */
export function shortFieldName(pointer: Pointer): string {
  const at = splitPointer(pointer);
  return at === null ? "Priority" : SHORT_PART_NAME[at.part];
}

/** The unit people type a field in; priorities and weights have none. */
export function fieldUnit(pointer: Pointer): string {
  const at = splitPointer(pointer);
  return at === null || at.part === "weight" ? "" : UNIT[at.resource];
}

/** A field's value as text, in the unit people type. */
export function valueText(pointer: Pointer, value: Value): string {
  const at = splitPointer(pointer);
  if (at === null || at.part === "weight") return value === undefined ? "unset" : String(value);
  const text = bound(at.resource, value);
  return typeof value === "number" ? `${text} ${UNIT[at.resource]}` : text;
}

/** Why a typed text is not a value, and what to type instead. */
export function entryProblemText(problem: EntryProblem, text: string): string {
  switch (problem) {
    case "missing":
      return "Enter a number, or choose unlimited or unset.";
    case "notANumber":
      return `"${text.trim()}" is not a number. Use digits and a decimal point.`;
    case "notWhole":
      return "Enter a whole number.";
    case "negative":
      return "Must not be negative.";
    case "tooPrecise":
      return "Use at most three decimal places.";
  }
}

/** Texts of the queues page: the tree, the drawer and its form. */

import { needsExplanation } from "../model/amountText.ts";
import { inlineText } from "../model/inline.ts";
import type { Bound, Resource } from "../model/rows.ts";
import {
  type Entry,
  type EntryProblem,
  type Part,
  type Pointer,
  readEntry,
  splitPointer,
  type TextField,
  textField,
  type Value,
} from "../model/values.ts";
import {
  amount,
  bound,
  count,
  gpuCount,
  plural,
  RESOURCE_NAME,
  TYPED_UNIT,
  UNIT,
} from "./numbers.ts";

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
  create: "New queue",
  noSuch: (queue: string) => `There is no queue "${queue}"`,
  noSuchText: "It may have been deleted or renamed. Close this panel to see the tree.",
} as const;

export const VIEWS = {
  label: "View",
  tree: "Tree",
  icicle: "Icicle",
  fairness: "Fairness",
} as const;

/** A queue that was cut in the tree, to be pasted below another one. */
export const CUT = {
  taken: (queue: string) =>
    `${queue} is cut. Press v on a queue to move it below that one, or Esc to leave it where it is.`,
  locked: (queue: string) =>
    `${queue} cannot be moved: you may not edit it, another manager owns it, or the data shown is out of date.`,
} as const;

export const FAIRNESS = {
  top: "Top-level queues",
  below: (parent: string) => `Below ${parent}`,
  columns: [
    "Queue",
    "0 to twice its share",
    "Of its share",
    "Allocated",
    "Fair share",
    "Difference",
  ],
  ratio: (ratio: number) => `${Math.round(100 * ratio)} %`,
  noShare: "no share",
  lacks: (value: string) => `lacks ${value}`,
  beyond: (value: string) => `${value} beyond it`,
  pair: (from: string, value: string, to: string) =>
    `${from} holds ${value} beyond its share that ${to} lacks.`,
  emptyTitle: "Nothing to compare",
  empty: "No queue holds or is entitled to anything of this resource.",
} as const;

export const ICICLE = {
  name: "Queues by amount, parents above their children",
  by: "Width",
  allocated: "Allocated",
  quota: "Quota",
  tones: { below: "below its share", near: "near its share", above: "above its share" },
  /** The colors told apart without seeing them. */
  marks: { below: "▼", near: "●", above: "▲" },
  slice: (queue: string, value: string, unit: string, tone: string) =>
    `${queue}: ${value} ${unit}, ${tone}`,
  emptyTitle: "Nothing to draw",
  empty: "No queue has an amount of this resource. Choose the other width, or another resource.",
} as const;

export const ACTIONS = {
  label: "Actions",
  addChild: "Add a child queue",
  duplicate: "Duplicate",
  move: "Move…",
  children: "Edit children…",
  remove: "Delete…",
} as const;

export const NEW_QUEUE = {
  title: "New queue",
  name: "Name",
  nameHint: "Lower-case letters, digits and hyphens. It cannot be changed later.",
  parent: "Parent queue",
  topLevel: "None: a top-level queue",
  note: "CPU and memory start without a quota and without a limit. All fields can be edited afterwards.",
  draftOnly: "The parent exists only in the draft, so this queue can be created only with it.",
  submit: "Create queue",
  created: "Queue created",
  createdText: (queue: string) => `Queue ${queue} exists now.`,
} as const;

export const CHILDREN = {
  title: (queue: string) => `Edit the children of ${queue}`,
  text: "Amounts of GPUs. A change becomes an edit in the draft, which is reviewed before it is applied.",
  columns: ["Queue", "Quota", "Limit", "Weight"],
  cell: (queue: string, field: string) => `${queue}: ${field}`,
  sum: (sum: string, parent: string) => `Quotas of the children: ${sum} of ${parent}`,
  scale: "Scale quotas to the parent's",
  even: "Share evenly",
  unlimited: "unlimited",
  hint: "A number, “unlimited”, or nothing for unset.",
  add: (queues: number) => `Add ${plural(queues, "edit")} to the draft`,
} as const;

export const MOVE_QUEUE = {
  title: (queue: string) => `Move ${queue}`,
  text: (queues: number) =>
    queues === 0
      ? "Its running workloads stay; from the next cycle on they count below the new parent."
      : `The ${plural(queues, "queue")} below it move with it. Running workloads stay; from the next cycle on they count below the new parent.`,
  submit: "Move queue",
  moved: "Queue moved",
  movedText: (queue: string, parent: string | null) =>
    parent === null
      ? `Queue ${queue} is a top-level queue now.`
      : `Queue ${queue} is below ${parent} now.`,
} as const;

export const DELETE_QUEUE = {
  title: (queue: string) => `Delete ${queue}?`,
  text: "The queue and its settings are removed from the cluster. Undo creates it again with the same settings.",
  typed: (queue: string) => `It has workloads. Type ${queue} to confirm`,
  submit: "Delete queue",
  deleted: "Queue deleted",
  deletedText: (queue: string) => `Queue ${queue} is deleted.`,
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
  trend: "GPUs, 1 h",
  pending: "Pending",
  edit: "Edit",
} as const;

export const FACTS = {
  history: "History",
  name: "Name",
  parent: "Parent",
  topLevel: "none (top-level queue)",
  workloads: "Workloads",
  workloadCounts: (running: number, pending: number) =>
    `${count(running)} running, ${count(pending)} pending`,
  created: "Created",
  models: "GPU models",
  model: (model: string, allocated: number, quota?: Bound, limit?: Bound) =>
    `${model}: ${gpuCount(allocated)} allocated · quota ${quota ?? "none"} · limit ${limit ?? "none"}`,
  resource: (resource: Resource, allocated: number, requested: number, share: number | null) =>
    [
      `${amount(resource, allocated)} of ${amount(resource, requested)} requested ${UNIT[resource]} allocated`,
      `fair share ${share === null ? "not computed yet" : amount(resource, share)}`,
    ].join(" · "),
} as const;

export const FORM = {
  general: "General",
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
  undo: "Reset",
  save: "Save",
  saved: "Saved",
  savedText: (queue: string) => `Queue ${queue}: the cluster has the new values.`,
  unneeded: "Nothing to change",
  unneededText: (queue: string) => `Queue ${queue}: the cluster already had these values.`,
  rejected: "The server would reject this change",
  outside: "You can edit only queues below the ones given to you. Ask an administrator for more.",
  discard: "Discard your changes?",
  discardText: "This queue has changes that are not saved.",
  discardYes: "Discard",
  discardNo: "Keep editing",
  viewer: "You can view queues but not edit them. Ask an administrator for the right to edit.",
  stale: "The data shown is out of date. Editing is possible again once it is current.",
  managedElsewhere: (owner: string) => `${owner} manages this queue. Edit it there.`,
  forGit: "Draft a change for Git",
  forGitNote:
    "What you type is not saved here: add it to the draft, and export the draft as a patch.",
} as const;

export const TAKE_OVER = {
  button: "Take over…",
  title: (queue: string) => `Take ${queue} over?`,
  text: (owner: string) =>
    `kaiweb will own the fields of this queue instead of ${owner}, and they can be edited here. The values stay as they are. Remove the queue from its source as well: ${owner} will object, or write its values again.`,
  confirm: (owner: string) => `Type ${owner} to confirm`,
  reason: "Reason",
  submit: "Take over",
  done: "Taken over",
  doneText: (queue: string) => `Queue ${queue} can be edited here now.`,
} as const;

export const INLINE = {
  cell: (field: string, queue: string) => `${field} of ${queue}`,
  hint: "Enter adds it to the draft, Escape leaves it as it was. Also: unlimited, or nothing for unset.",
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
const TEXT_NAME: Record<TextField, string> = {
  displayName: "Display name",
  preemptMinRuntime: "Minimum runtime before preemption",
  reclaimMinRuntime: "Minimum runtime before reclaim",
  maxRunTime: "Maximum run time",
  requeueDelay: "Wait after the maximum run time",
  labels: "Labels",
  userFairness: "Users who hold less go first",
  gpuModels: "GPU models: quota/limit",
};
const TEXT_HINT: Record<TextField, string> = {
  displayName: "the name of the queue",
  preemptMinRuntime: "for example 5m or 1h30m",
  reclaimMinRuntime: "for example 5m or 1h30m",
  maxRunTime: "for example 8h; 0s for none",
  requeueDelay: "for example 30m",
  labels: "for example team=a, cost=7",
  userFairness: "",
  gpuModels: "for example NVIDIA-H100=4/8",
};
const SHORT_PART_NAME: Record<Part, string> = { quota: "Quota", limit: "Limit", weight: "Weight" };

/** The full name of a field: `GPU quota`. */
export function fieldName(pointer: Pointer): string {
  const text = textField(pointer);
  if (text !== null) return TEXT_NAME[text];
  const at = splitPointer(pointer);
  return at === null ? "Priority" : `${RESOURCE_NAME[at.resource]} ${PART_NAME[at.part]}`;
}

/** The name of a field below the heading of its resource: `Quota`. */
export function shortFieldName(pointer: Pointer): string {
  const at = splitPointer(pointer);
  return at === null ? fieldName(pointer) : SHORT_PART_NAME[at.part];
}

/** What an empty text field stands for or takes; "" for other fields. */
export function fieldHint(pointer: Pointer): string {
  const text = textField(pointer);
  return text === null ? "" : TEXT_HINT[text];
}

/** The unit people type a field in; priorities and weights have none. */
export function fieldUnit(pointer: Pointer): string {
  const at = splitPointer(pointer);
  return at === null || at.part === "weight" ? "" : TYPED_UNIT[at.resource];
}

/** A field's value in a cell of the tree, whose head names the unit. */
export function cellText(pointer: Pointer, value: Value): string {
  const at = splitPointer(pointer);
  if (at === null || at.part === "weight") return value === undefined ? "–" : String(value);
  return bound(at.resource, value as Bound | undefined);
}

/** The text that a cell starts with when it is edited; it names the unit where the cell shows another one. */
export function startText(pointer: Pointer, value: Value): string {
  const text = inlineText(pointer, value);
  const at = splitPointer(pointer);
  if (at === null || at.part === "weight" || typeof value !== "number") return text;
  const unit = TYPED_UNIT[at.resource];
  return unit === UNIT[at.resource] ? text : `${text} ${unit}`;
}

/** A field's value as text, in the unit people type. */
export function valueText(pointer: Pointer, value: Value): string {
  const at = splitPointer(pointer);
  if (at === null || at.part === "weight") return value === undefined ? "unset" : String(value);
  const text = bound(at.resource, value as Bound | undefined);
  if (typeof value !== "number") return text;
  return at.resource === "gpu" ? gpuCount(value) : `${text} ${UNIT[at.resource]}`;
}

/** What an entry means, where it is more than the plain number that the field shows; "" else. */
export function entryMeaning(pointer: Pointer, entry: Entry): string {
  const at = splitPointer(pointer);
  if (
    at === null ||
    at.part === "weight" ||
    entry.kind !== "value" ||
    !needsExplanation(entry.text)
  )
    return "";
  const result = readEntry(pointer, entry);
  return typeof result === "string" ? "" : `= ${valueText(pointer, result.value)}`;
}

/** Why a typed text is not a value, and what to type instead. */
export function entryProblemText(problem: EntryProblem, text: string): string {
  switch (problem) {
    case "missing":
      return "Enter a number, or choose unlimited or unset.";
    case "notANumber":
      return `"${text.trim()}" is not a number. Use digits and a decimal point.`;
    case "ambiguous":
      return `"${text.trim()}" may be read in two ways. Write it without the comma.`;
    case "notWhole":
      return "Enter a whole number.";
    case "negative":
      return "Must not be negative.";
    case "notModels":
      return "Write MODEL=quota/limit, with commas between models; - is no bound.";
    case "notLabels":
      return "Write labels as key=value, with commas between them.";
    case "tooPrecise":
      return "Use at most three decimal places.";
  }
}

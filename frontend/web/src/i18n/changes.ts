/** Texts of drafts, change sets and the audit log. */
import type { AuditEntry, ChangeState, ChangeStep, EditAction } from "../model/rows.ts";
import { POINTERS, type Value } from "../model/values.ts";
import { count, gpuCount, plural } from "./numbers.ts";
import { fieldName, valueText } from "./queues.ts";

/** How many queues a title or a tray names before it counts the others. */
const NAMED = 3;

function namesText(names: readonly string[]): string {
  const others = names.length - NAMED;
  const named = names.slice(0, NAMED).join(", ");
  return others > 0 ? `${named} and ${count(others)} more` : named;
}

export const DRAFT = {
  label: "Draft",
  title: (queues: readonly string[]) => `Edit ${namesText(queues)}`,
  queues: (queues: readonly string[]) => `${plural(queues.length, "queue")}: ${namesText(queues)}`,
  errors: (errors: number) => plural(errors, "error"),
  review: "Review…",
  discard: "Discard",
  add: "Add to draft",
  added: "Added to the draft",
  addedText: (queue: string) => `Queue ${queue} is edited when the draft is applied.`,
  failed: "The draft could not be changed",
  discardTitle: "Discard the draft?",
  discardText: (queues: readonly string[]) =>
    `Its edits of ${namesText(queues)} are deleted. The queues stay as they are.`,
  keep: "Keep the draft",
  was: (value: string) => `${value} now; this value is in the draft`,
  inDraft: (queue: string) => `${queue} has edits in the draft`,
  drafted: "This queue has edits in the draft. They are not in the cluster yet.",
} as const;

export const CHANGES = {
  title: "Changes",
  all: "All changes",
  count: (rows: number, isComplete: boolean) =>
    isComplete ? plural(rows, "change set") : `the newest ${plural(rows, "change set")}`,
  emptyTitle: "No changes yet",
  empty:
    "Choose “Add to draft” when you edit a queue. Several edits are then reviewed and applied together.",
  noMatchTitle: "No change matches",
  noMatch: "Choose another state.",
  anyState: "Any state",
  missingTitle: "There is no such change set",
  missing: "It may have been deleted. {link}",
  columns: {
    title: "Change",
    state: "State",
    author: "Author",
    queues: "Queues",
    changed: "Last step",
  },
} as const;

export const CHANGE_STATES: Record<ChangeState, string> = {
  draft: "Draft",
  requested: "Waiting for approval",
  approved: "Approved",
  rejected: "Rejected",
  applying: "Being applied",
  applied: "Applied",
  rolledBack: "Rolled back",
  stuck: "Stuck half-way",
};

export const CHANGE_NOTES: Partial<Record<ChangeState, string>> = {
  requested: "An administrator has to approve this before it can be applied.",
  approved: "Approved. It can be applied with the rights of the administrator who approved it.",
  rejected: "An administrator rejected this. Edit it, then ask again.",
  applying: "The steps are written one after the other. If one fails, those before it are undone.",
  rolledBack: "A step failed, and the steps before it were undone: the queues are as before.",
  stuck: "A step failed, and not every step before it could be undone. The steps show which.",
};

export const CHANGE = {
  facts: (author: string, time: string) => `by ${author}, ${time}`,
  decidedBy: (name: string) => `decided by ${name}`,
  undoes: "Undoes change {link}",
  number: (id: number) => `#${id}`,
  name: "Title",
  reason: "Reason",
  reasonHint: "Recorded with every edited queue in the audit log.",
  reasonNeeded: "This change evicts workloads: give a reason.",
  review: "Review",
  edits: "Edits",
  steps: "Steps",
  progress: (done: number, steps: number) => `${done} of ${steps} done`,
  field: "Field",
  before: "Before",
  after: "After",
  unchanged: "The queue already has these values.",
  remove: (queue: string) => `Remove the edit of ${queue}`,
  removeShort: "Remove",
  stale: (queues: string) => `Edited by others since this was written: ${queues}`,
  staleText: "The table shows the values as they are now beside yours. Accept them to go on.",
  acceptCurrent: "Continue with the current values",
  cannotBeMade: "This change cannot be made",
  warnings: "Warnings",
  policy: "Work above a lowered limit",
  policies: [
    { value: "warn", label: "stays until it ends" },
    { value: "drain", label: "is requeued if it is preemptible" },
    { value: "block", label: "forbids the change" },
  ],
  drains: (workloads: number) => `Requeued after the change: ${plural(workloads, "workload")}`,
  drained: (queue: string, gpu: number) => `${queue} · ${gpuCount(gpu)}`,
  runPreview: "Preview",
  previewing: "Asking the scheduler what would happen…",
  apply: "Apply",
  applyAndEvict: (pods: number) => `Apply and evict ${plural(pods, "pod")}`,
  applyAndRequeue: (workloads: number) => `Apply and requeue ${plural(workloads, "workload")}`,
  applyWithout: "Apply without a preview",
  applied: "Applied",
  appliedText: (title: string) => `${title}: the cluster has the new values.`,
  request: "Request approval",
  requested: "Approval requested",
  requestedText: "Administrators see the change on the page Changes.",
  exportPatch: "Export patch",
  exportText: (owners: string) =>
    `${owners} manages queues of this draft, so it cannot be applied here. Export it as a patch for the source of these queues.`,
  patch: "Patch",
  needsApproval:
    "You may not edit all of these queues. Ask an administrator to approve the change.",
  policyAsks:
    "By the policies (Settings) an administrator other than the author must approve this change.",
  approve: "Approve",
  reject: "Reject",
  undo: "Undo this change",
  deleteDraft: "Delete draft",
  failed: "The change was refused",
  save: "Save",
} as const;

export const UNDO = {
  button: "Undo",
  title: (queue: string) => `Undo: ${queue}`,
  done: "Undone",
  doneText: "The cluster has the values from before.",
  review: "Review the undo",
  reviewText: "It would evict workloads, or cannot be made as it is. Nothing has been written yet.",
  failed: "The undo failed",
  ask: "Undo the last change?",
  asked: (title: string, age: string) => `“${title}”, applied ${age} ago.`,
  how: "Its effect is previewed first. If it evicts nothing, it is applied at once; else you review it before anything is written.",
  keep: "Keep it",
  nothingTitle: "Nothing to undo",
  nothing:
    "You have applied no change that can be undone. The page {link} lists the changes of everybody.",
  stale: "The data shown is out of date. Undo is possible as soon as it is current again.",
} as const;

export const STEP_STATES: Record<ChangeStep["state"], string> = {
  pending: "waiting",
  started: "being written",
  done: "done",
  undone: "undone",
  failed: "failed",
};

export const EDIT_ACTIONS: Record<EditAction, string> = {
  update: "Edit",
  replace: "Replace",
  create: "Create",
  delete: "Delete",
};

/** How a row of the tree shows what the draft does to its queue. */
export const EDIT_ACTIONS_IN_DRAFT: Record<EditAction, string> = {
  update: "draft",
  replace: "draft",
  create: "draft",
  delete: "deleted in the draft",
};

const AUDIT_ACTIONS: Record<AuditEntry["action"], string> = {
  create: "Created",
  update: "Edited",
  delete: "Deleted",
  hold: "Held",
  release: "Released",
  requeue: "Requeued",
  retryBind: "Retried the bind of",
  takeOver: "Took over",
  test: "Tested",
};
const AUDIT_KINDS: Record<AuditEntry["kind"], string> = {
  queue: "queue",
  workload: "workload",
  user: "user",
  roleBinding: "role of",
  token: "token",
  shard: "shard",
  policy: "policies of",
  price: "price of",
  notification: "webhook",
};

export const AUDIT = {
  title: "Audit",
  entries: "Writes",
  note: "Every write, by page, token or change set",
  anyQueue: "Any queue",
  anyState: "Any outcome",
  actor: "User",
  anyActor: "Any user",
  since: "From",
  until: "Until",
  clear: (name: string) => `Clear ${name}`,
  emptyTitle: "Nothing was written yet",
  empty: "Writes to queues, workloads, users and tokens appear here.",
  noMatchTitle: "No write matches",
  noMatch: "Change or clear the filters.",
  columns: ["When", "Who", "What", "Before and after", "Why"],
  states: {
    intended: "begun",
    done: "done",
    failed: "failed",
    unclear: "unclear",
  } satisfies Record<AuditEntry["state"], string>,
  kinds: AUDIT_KINDS,
  written: (action: AuditEntry["action"], kind: AuditEntry["kind"]) =>
    `${AUDIT_ACTIONS[action]} ${AUDIT_KINDS[kind]}`,
  anyKind: "Anything",
  change: (before: string, after: string) => `${before} → ${after}`,
  request: (id: string) => `request ${id}`,
} as const;

/** The name of the field that a JSON pointer of a diff names. */
export function pointerName(pointer: string): string {
  const known = POINTERS.find((each) => each === pointer);
  if (known !== undefined) return fieldName(known);
  if (pointer === "/parent") return "Parent queue";
  if (pointer === "/managedBy") return "Managed by";
  if (pointer.startsWith("/labels/")) return `Label ${unescaped(pointer.slice("/labels/".length))}`;
  return pointer.replace(/^\/(spec\/)?/, "");
}

/** One side of a diff as text. */
export function pointerValue(pointer: string, value: unknown): string {
  const known = POINTERS.find((each) => each === pointer);
  if (known !== undefined) return valueText(known, (value ?? undefined) as Value);
  if (value === null || value === undefined) return pointer === "/parent" ? "none" : "unset";
  return typeof value === "string" ? value : JSON.stringify(value);
}

function unescaped(token: string): string {
  return token.replaceAll("~1", "/").replaceAll("~0", "~");
}

/** The edits of a draft. Each queue has at most one, so later edits are merged into earlier ones. */
import type { Change, EditAction, QueuePatch } from "./rows.ts";

export type DraftEdit = {
  readonly name: string;
  readonly action: EditAction;
  readonly edit: QueuePatch;
};

/** Return the edits of a change set; the server leaves out what has its default. */
export function editsOf(change: Pick<Change, "edits">): DraftEdit[] {
  return change.edits.map(({ name, action = "update", edit = {} }) => ({
    name,
    action,
    edit: edit as QueuePatch,
  }));
}

/** Add an edit; its value of a field replaces the one in the draft. */
export function addEdit(edits: readonly DraftEdit[], added: DraftEdit): DraftEdit[] {
  const earlier = edits.find(({ name }) => name === added.name);
  if (earlier === undefined) return [...edits, added];
  // A queue that the draft creates does not exist yet, so deleting it only shortens the draft.
  if (added.action === "delete" && earlier.action === "create")
    return withoutEdit(edits, added.name);
  const merged =
    added.action === "update" && earlier.action !== "delete"
      ? { ...earlier, edit: mergePatches(earlier.edit, added.edit) }
      : added;
  return edits.map((edit) => (edit === earlier ? merged : edit));
}

export function withoutEdit(edits: readonly DraftEdit[], name: string): DraftEdit[] {
  return edits.filter((edit) => edit.name !== name);
}

/** Merge two merge patches, so that the result has the effect of one after the other. */
export function mergePatches(first: QueuePatch, second: QueuePatch): QueuePatch {
  const merged: Record<string, unknown> = { ...first };
  for (const [field, value] of Object.entries(second)) {
    const earlierValue = merged[field];
    const isMerged = field !== "gpuModels" && isObject(earlierValue) && isObject(value);
    merged[field] = isMerged ? { ...earlierValue, ...value } : value;
  }
  return merged as QueuePatch;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

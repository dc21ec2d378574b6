/** What may be done with a change set. The same rules as the server's, which decides. */
import { type DraftEdit, editsOf } from "./draft.ts";
import { mayEdit, mayPlaceUnder } from "./rights.ts";
import type { Change, ChangeSummary, Me } from "./rows.ts";
import type { NamedQueue } from "./tree.ts";

export type ChangeRights = {
  /** Edit it, remove edits from it, delete it. */
  readonly edit: boolean;
  readonly apply: boolean;
  readonly request: boolean;
  readonly decide: boolean;
  readonly undo: boolean;
};

export function changeRights(
  change: Change,
  me: Me | undefined,
  queues: ReadonlyMap<string, NamedQueue>,
): ChangeRights {
  const mayWrite = me?.rights.editQueues === true;
  const isAdmin = me?.isAdmin === true;
  const isOwn = mayWrite && (isAdmin || change.author === me?.username);
  const isDraft = change.state === "draft" || change.state === "rejected";
  const edits = editsOf(change);
  const mayMakeAll = edits.every((edit) => mayMake(edit, edits, me, queues));
  const isApplicable = change.state === "approved" || (isDraft && mayMakeAll);
  // By the policies somebody else must approve it, whatever the author may do.
  const awaitsOther = change.needsApproval && change.author === me?.username;
  return {
    edit: isOwn && isDraft,
    apply: isOwn && isApplicable && !change.needsApproval,
    request: isOwn && isDraft && (!isAdmin || change.needsApproval),
    decide: isAdmin && change.state === "requested" && !awaitsOther,
    undo: mayWrite && change.state === "applied",
  };
}

/** Return the newest change set that the user applied and nobody has undone; undoing change sets do not count. */
export function lastUndoable(
  newestFirst: readonly ChangeSummary[],
  username: string | undefined,
): ChangeSummary | null {
  const applied = newestFirst.filter(({ state }) => state === "applied");
  const undone = new Set(applied.map(({ reverts }) => reverts));
  const isUndoable = ({ id, author, reverts }: ChangeSummary) =>
    author === username && reverts === null && !undone.has(id);
  return applied.find(isUndoable) ?? null;
}

/** Return whether the user may make one of the edits; a queue may be placed below one that another edit creates. */
function mayMake(
  { name, action, edit }: DraftEdit,
  edits: readonly DraftEdit[],
  me: Me | undefined,
  queues: ReadonlyMap<string, NamedQueue>,
): boolean {
  const parent = edit.parent;
  const isPlaced = action === "create" || parent !== undefined;
  if (action !== "create" && !mayEdit(me, queues, name)) return false;
  if (!isPlaced) return true;
  const creation = edits.find((other) => other.action === "create" && other.name === parent);
  if (creation !== undefined && creation.name !== name) {
    return mayPlaceUnder(me, queues, creation.edit.parent ?? null);
  }
  return mayPlaceUnder(me, queues, parent ?? null);
}

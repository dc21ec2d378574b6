/** What would unblock a workload, as edits of a draft. */
import type { DraftEdit } from "./draft.ts";
import type { QueuePatch, Unblock } from "./rows.ts";

type Edits = { readonly queues?: readonly { readonly name: string; readonly edit: QueuePatch }[] };

/** Return the edits of queues; a node cannot be added by an edit. */
export function draftEditsOf(unblock: Unblock): DraftEdit[] {
  const { queues = [] } = unblock.edits as Edits;
  return queues.map(({ name, edit }) => ({ name, action: "update", edit }));
}

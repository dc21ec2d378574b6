import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "react-router";
import { create } from "zustand";
import { applyChange, createChange, previewChange } from "../api/changes.ts";
import { ApiProblem } from "../api/problem.ts";
import { UNDO } from "../i18n/changes.ts";
import type { DraftEdit } from "../model/draft.ts";
import type { Change } from "../model/rows.ts";
import { reportDone, reportFailure } from "../ui/reportDone.tsx";

/** Makes the change set that undoes something. */
export type MakeDraft = () => Promise<Change>;

/** The last write of this tab that can be undone, and what it was. */
export const useLastWrite = create<{
  readonly last: { readonly text: string; readonly makeDraft: MakeDraft } | null;
}>(() => ({ last: null }));

/** Return a function that reports a write with a button that undoes it; the key `z` undoes it as well. */
export function useReportUndoable(): (title: string, text: string, makeDraft: MakeDraft) => void {
  const undo = useUndo();
  return (title, text, makeDraft) => {
    useLastWrite.setState({ last: { text, makeDraft } });
    reportDone(title, text, { text: UNDO.button, run: () => void undo(makeDraft) });
  };
}

/**
 * Return a function that undoes something by a change set of its own.
 *
 * The change set is previewed first. It is applied at once only if that evicts nothing; else its page is opened for review.
 */
export function useUndo(): (makeDraft: MakeDraft) => Promise<void> {
  const navigate = useNavigate();
  const queries = useQueryClient();
  return async (makeDraft) => {
    if (useLastWrite.getState().last?.makeDraft === makeDraft) {
      useLastWrite.setState({ last: null });
    }
    let draft: Change | null = null;
    try {
      draft = await makeDraft();
      if (await applyIfHarmless(draft)) {
        reportDone(UNDO.done, UNDO.doneText);
      } else {
        reportDone(UNDO.review, UNDO.reviewText);
        void navigate(`/changes/${draft.id}`);
      }
    } catch (error) {
      if (!(error instanceof ApiProblem || error instanceof DOMException)) throw error;
      reportFailure(UNDO.failed, error.message);
      if (draft !== null) void navigate(`/changes/${draft.id}`);
    }
    await queries.invalidateQueries({ queryKey: ["changes"] });
  };
}

/** Create the draft that undoes an edit of one queue. */
export function draftOf(inverse: DraftEdit): Promise<Change> {
  return createChange({ title: UNDO.title(inverse.name), edits: [inverse] });
}

/** Apply a draft if its preview evicts nothing that would otherwise stay; return whether it was applied. */
async function applyIfHarmless(draft: Change): Promise<boolean> {
  if (draft.errors.length > 0 || draft.stale.length > 0) return false;
  const { simulation } = await previewChange(draft.id);
  const verdict = simulation.answer?.verdict;
  if (verdict !== "safe" && verdict !== "no-effect") return false;
  const applied = await applyChange(draft.id, { preview: simulation.id });
  return applied.state === "applied";
}

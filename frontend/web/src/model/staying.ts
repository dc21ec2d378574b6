/** Why a lowered quota evicts nobody: the work above it stays, and for a reason that can be told. */
import type { DraftEdit } from "./draft.ts";
import type { Preview } from "./rows.ts";

type Staying = {
  readonly queue: string;
  readonly quota: number;
  readonly allocated: number;
  readonly share: number;
  /** Whether what the queue holds is its fair share; else it stays only while nobody claims the room. */
  readonly isWithinShare: boolean;
};

/** Return the queues that hold more GPUs than the quota the edits give them, if the preview evicts nothing. */
export function stayingWork(preview: Preview, edits: readonly DraftEdit[]): Staying[] {
  if (preview.verdict !== "safe" && preview.verdict !== "no-effect") return [];
  return edits.flatMap(({ name, edit }) => {
    const quota = edit.quota?.gpu;
    const after = preview.shares.find(({ queue }) => queue === name)?.after;
    if (typeof quota !== "number" || !after || after.allocated.gpu <= quota) return [];
    const [allocated, share] = [after.allocated.gpu, after.share.gpu];
    return [{ queue: name, quota, allocated, share, isWithinShare: allocated <= share }];
  });
}

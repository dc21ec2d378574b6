import { useMutation } from "@tanstack/react-query";
import { ApiProblem } from "../api/problem.ts";
import { simulate } from "../api/simulate.ts";
import { PREVIEW } from "../i18n/preview.ts";
import type { Preview, Question, QueuePatch } from "../model/rows.ts";

/** An eviction and the start that it makes room for take two cycles; the third shows what follows. */
const CYCLES = 3;
const TIMEOUT_MS = 60_000;

/** The preview of an edit, or why there is none. */
export type PreviewResult =
  | { readonly preview: Preview }
  | { readonly preview: null; readonly detail: string };

/** Return a function that asks the server what an edit of a queue would do, and its last result. */
export function usePreview(queue: string) {
  const mutation = useMutation({ mutationFn: (patch: QueuePatch) => askPreview(queue, patch) });
  return {
    run: mutation.mutateAsync,
    result: mutation.data ?? null,
    isRunning: mutation.isPending,
  };
}

/** Ask the server what an edit of a queue would do. */
export async function askPreview(queue: string, edit: QueuePatch): Promise<PreviewResult> {
  // The schema does not say that null unsets an amount, as it does in a PATCH.
  const edits = [{ name: queue, edit }] as NonNullable<Question["queues"]>;
  const question: Question = { cycles: CYCLES, queues: edits };
  try {
    const { answer, error } = await simulate(question, AbortSignal.timeout(TIMEOUT_MS));
    return answer === null
      ? { preview: null, detail: error ?? PREVIEW.unknownError }
      : { preview: answer };
  } catch (error) {
    if (error instanceof ApiProblem) return { preview: null, detail: error.message };
    if (error instanceof DOMException && error.name === "TimeoutError") {
      return { preview: null, detail: PREVIEW.tooLong };
    }
    throw error;
  }
}

/** Return whether an edit can change what is scheduled; the display name cannot. */
export function canChangeScheduling(patch: QueuePatch): boolean {
  return Object.keys(patch).some((field) => field !== "displayName");
}

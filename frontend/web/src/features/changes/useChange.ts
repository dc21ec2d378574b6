import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import {
  actOnChange,
  applyChange,
  type ChangeAction,
  type ChangeContent,
  deleteChange,
  fetchChange,
  patchChange,
  previewChange,
} from "../../api/changes.ts";
import { changeKey } from "../../editing/useDraft.ts";
import type { Change, Simulation } from "../../model/rows.ts";

const APPLYING_MS = 500;
const OPEN_MS = 15_000;
/** The server refuses a preview older than a minute; the rest is for reading the answer and the way to the server. */
const FRESH_MS = 50_000;

type Previewed = { readonly at: number; readonly edits: string; readonly simulation: Simulation };

/** Return a change set, kept up to date, and what can be done with it. */
export function useChange(id: number) {
  const queries = useQueryClient();
  const [previewed, setPreviewed] = useState<Previewed | null>(null);
  const write = useMutation({
    mutationFn: (run: () => Promise<Change>) => run(),
    onSuccess: (change) => {
      queries.setQueryData(changeKey(change.id), change);
      void queries.invalidateQueries({ queryKey: ["changes"] });
    },
    // A refused step changes the state too: the set is rolled back.
    onError: () => void queries.invalidateQueries({ queryKey: changeKey(id) }),
  });
  const query = useQuery({
    queryKey: changeKey(id),
    queryFn: ({ signal }) => fetchChange(id, signal),
    refetchInterval: ({ state }) =>
      write.isPending || state.data?.state === "applying" ? APPLYING_MS : OPEN_MS,
  });
  const change = query.data;
  const editsText = JSON.stringify(change?.edits);
  const isCurrent = previewed !== null && previewed.edits === editsText;

  const preview = useMutation({
    mutationFn: () => previewChange(id),
    onSuccess: (result) => {
      queries.setQueryData(changeKey(id), result.change);
      setPreviewed({ at: Date.now(), edits: editsText, simulation: result.simulation });
    },
  });
  // Apart from the other writes: it must not disable the button on its way to which the user left the field.
  const texts = useMutation({
    mutationFn: (content: ChangeContent) => patchChange(id, content),
    onSuccess: (saved) => queries.setQueryData(changeKey(id), saved),
  });
  const savedTexts = useRef<Promise<unknown>>(Promise.resolve());
  const act = (run: () => Promise<Change>) => write.mutateAsync(run);
  return {
    change,
    loadError: query.error,
    error: write.error ?? preview.error ?? texts.error,
    isBusy: write.isPending,
    isPreviewing: preview.isPending,
    /** The last preview of these edits, with how old it is in the eyes of the server. */
    simulation: isCurrent ? previewed.simulation : null,
    isFresh: () => isCurrent && Date.now() - previewed.at < FRESH_MS,
    preview: async () => (await preview.mutateAsync()).simulation,
    write: (content: ChangeContent) => act(() => patchChange(id, content)),
    saveTexts: (content: ChangeContent) => {
      // A refusal is shown by `error`.
      savedTexts.current = texts.mutateAsync(content).catch(() => undefined);
    },
    act: (action: ChangeAction) => act(() => actOnChange(id, action)),
    apply: (body: { preview?: number; reason?: string }) =>
      act(async () => {
        // Leaving a field saves it, and the click that leaves it may be the one that applies.
        await savedTexts.current;
        return applyChange(id, body);
      }),
    remove: async () => {
      await deleteChange(id);
      queries.removeQueries({ queryKey: changeKey(id) });
      await queries.invalidateQueries({ queryKey: ["changes"] });
    },
  };
}

export type ChangeView = ReturnType<typeof useChange>;

/** The draft that this browser collects edits in. It is a change set of the server, so it survives and can be shared. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { create } from "zustand";
import { persist } from "zustand/middleware";
import { createChange, deleteChange, fetchChange, patchChange } from "../api/changes.ts";
import { useMe } from "../api/useMe.ts";
import { DRAFT } from "../i18n/changes.ts";
import { addEdit, type DraftEdit, editsOf } from "../model/draft.ts";
import type { Change } from "../model/rows.ts";

type DraftId = { readonly id: number | null; set(id: number | null): void };

const useDraftId = create<DraftId>()(
  persist((set) => ({ id: null, set: (id) => set({ id }) }), { name: "kaiweb-draft" }),
);

export const changeKey = (id: number | null) => ["change", id];

/** Return the open draft of the user, or null, with functions that add to it and discard it. */
export function useDraft() {
  const { id, set } = useDraftId();
  const me = useMe();
  const queries = useQueryClient();
  const { data } = useQuery({
    queryKey: changeKey(id),
    queryFn: ({ signal }) => fetchChange(id ?? 0, signal),
    enabled: id !== null,
  });
  const isOpen = data !== undefined && (data.state === "draft" || data.state === "rejected");
  const draft = isOpen && id !== null && data.author === me?.username ? data : null;

  const store = (change: Change | null) => {
    if (change !== null) queries.setQueryData(changeKey(change.id), change);
    set(change?.id ?? null);
    void queries.invalidateQueries({ queryKey: ["changes"] });
  };
  const addition = useMutation({
    mutationFn: (added: readonly DraftEdit[]) =>
      storeEdits(draft, added.reduce<DraftEdit[]>(addEdit, edits(draft))),
    onSuccess: store,
  });
  const removal = useMutation({
    mutationFn: async () => {
      if (draft !== null) await deleteChange(draft.id);
      return null;
    },
    onSuccess: store,
  });
  return {
    draft,
    edits: edits(draft),
    add: (edit: DraftEdit) => addition.mutateAsync([edit]),
    addAll: addition.mutateAsync,
    isAdding: addition.isPending,
    discard: removal.mutateAsync,
  };
}

export type Draft = ReturnType<typeof useDraft>;

function edits(draft: Change | null): DraftEdit[] {
  return draft === null ? [] : editsOf(draft);
}

/** Store the edits of a draft; one without edits is deleted. A title that the user wrote stays. */
export async function storeEdits(
  draft: Change | null,
  wanted: readonly DraftEdit[],
): Promise<Change | null> {
  const title = DRAFT.title(wanted.map(({ name }) => name));
  if (draft === null) return createChange({ title, edits: wanted });
  if (wanted.length === 0) {
    await deleteChange(draft.id);
    return null;
  }
  const isOwnTitle = draft.title !== DRAFT.title(draft.queues);
  return patchChange(draft.id, isOwnTitle ? { edits: wanted } : { title, edits: wanted });
}

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "react-router";
import { actOnChange, listChanges } from "../api/changes.ts";
import { useMe } from "../api/useMe.ts";
import { type MakeDraft, useLastWrite, useUndo } from "../editing/useUndo.ts";
import { CHANGES, UNDO } from "../i18n/changes.ts";
import { span } from "../i18n/numbers.ts";
import { CLOSE } from "../i18n/ui.ts";
import { lastUndoable } from "../model/changes.ts";
import type { ChangeSummary } from "../model/rows.ts";
import { Dialog } from "../ui/Dialog.tsx";
import { DialogButtons } from "../ui/DialogButtons.tsx";
import { useNow } from "../ui/now.ts";
import { QueryResult } from "../ui/QueryResult.tsx";
import { RichText } from "../ui/RichText.tsx";
import { useStale } from "../ui/useStale.ts";

type Props = { onClose: () => void };

/**
 * Asks whether to undo the last change: the last write of this tab, else the last change set that the user applied.
 *
 * It asks, because the key that opens it is hit by accident easily.
 */
export function UndoDialog({ onClose }: Props) {
  // As it was when the dialog was opened: what others apply meanwhile must not change what the button does.
  const [last] = useState(() => useLastWrite.getState().last);
  const me = useMe();
  const changes = useQuery({
    queryKey: ["changes", "last"],
    queryFn: async ({ signal }) => (await listChanges("", signal)).items,
    enabled: last === null,
    gcTime: 0,
  });
  return (
    <Dialog title={UNDO.ask} size="md" onClose={onClose}>
      {last === null ? (
        <QueryResult query={changes} rows={2}>
          {(rows) => <LastChange change={lastUndoable(rows, me?.username)} onClose={onClose} />}
        </QueryResult>
      ) : (
        <Question text={last.text} makeDraft={last.makeDraft} onClose={onClose} />
      )}
    </Dialog>
  );
}

function LastChange({ change, onClose }: Props & { change: ChangeSummary | null }) {
  const now = useNow();
  if (change === null) {
    return (
      <p>
        <b>{UNDO.nothingTitle}.</b>{" "}
        <RichText
          text={UNDO.nothing}
          parts={{
            link: (
              <Link to="/changes" onClick={onClose}>
                {CHANGES.title}
              </Link>
            ),
          }}
        />
      </p>
    );
  }
  return (
    <Question
      text={UNDO.asked(change.title, span(now - Date.parse(change.changedAt)))}
      makeDraft={() => actOnChange(change.id, "revert")}
      onClose={onClose}
    />
  );
}

type QuestionProps = Props & { text: string; makeDraft: MakeDraft };

function Question({ text, makeDraft, onClose }: QuestionProps) {
  const undo = useUndo();
  const isStale = useStale() !== null;
  return (
    <>
      <p>{text}</p>
      <p>{isStale ? UNDO.stale : UNDO.how}</p>
      <DialogButtons
        cancelText={isStale ? CLOSE : UNDO.keep}
        confirmText={UNDO.button}
        isDangerous={false}
        isLocked={isStale}
        onCancel={onClose}
        onConfirm={() => {
          onClose();
          void undo(makeDraft);
        }}
      />
    </>
  );
}

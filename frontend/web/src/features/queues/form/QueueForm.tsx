import { Button, Group } from "@mantine/core";
import { useEffect, useEffectEvent, useState } from "react";
import { Link } from "react-router";
import { ApiProblem } from "../../../api/problem.ts";
import { PreviewPanel } from "../../../editing/PreviewPanel.tsx";
import { useDraft } from "../../../editing/useDraft.ts";
import {
  canChangeScheduling,
  type PreviewResult,
  usePreview,
} from "../../../editing/usePreview.ts";
import { draftOf, useReportUndoable } from "../../../editing/useUndo.ts";
import { messageAt } from "../../../editing/useVerdict.ts";
import { DRAFT } from "../../../i18n/changes.ts";
import { RESOURCE_NAME } from "../../../i18n/numbers.ts";
import { PREVIEW } from "../../../i18n/preview.ts";
import { FORM, QUEUES, TAKE_OVER } from "../../../i18n/queues.ts";
import type { Phase } from "../../../model/editing.ts";
import { type Queue, RESOURCES } from "../../../model/rows.ts";
import { POINTERS, type Pointer } from "../../../model/values.ts";
import { reportDone, reportFailure } from "../../../ui/reportDone.tsx";
import { Failure } from "../../../ui/States.tsx";
import { useStale } from "../../../ui/useStale.ts";
import { BoundField } from "./BoundField.tsx";
import { ConflictDialog } from "./ConflictDialog.tsx";
import { EvictionDialog } from "./EvictionDialog.tsx";
import styles from "./QueueDrawer.module.css";
import { TakeOverDialog } from "./TakeOverDialog.tsx";
import { useQueueEditor } from "./useQueueEditor.ts";

type Props = {
  queue: Queue;
  /** Whether the user may edit this queue, any queue at all, and everything. */
  rights: { here: boolean; anywhere: boolean; admin: boolean };
  onTouched: (isTouched: boolean) => void;
};

/** The form that edits the fields of a queue. */
export function QueueForm({ queue, rights, onTouched }: Props) {
  const reportUndoable = useReportUndoable();
  const draft = useDraft();
  const inDraft = draft.edits.find(({ name }) => name === queue.name);
  const editor = useQueueEditor(queue, ({ changed, inverse }) => {
    if (!changed) return reportDone(FORM.unneeded, FORM.unneededText(queue.name));
    reportUndoable(FORM.saved, FORM.savedText(queue.name), () =>
      draftOf({ name: queue.name, action: "update", edit: inverse }),
    );
  });
  const { entries, changed, errors, patch, verdict, phase, failure, conflict } = editor;
  const preview = usePreview(queue.name);
  const patchText = JSON.stringify(patch);
  // The result belongs to the edit it was asked for, and is not shown for a later one.
  const [previewedPatch, setPreviewedPatch] = useState<string | null>(null);
  const [confirming, setConfirming] = useState<PreviewResult | null>(null);
  const result = previewedPatch === patchText ? preview.result : null;
  const isStale = useStale() !== null;
  const [isForGit, setForGit] = useState(false);
  const [isTakingOver, setTakingOver] = useState(false);
  const isOwned = rights.here && queue.managedBy !== "";
  const locked = lockedText(queue, rights) ?? (isStale ? FORM.stale : null);
  // An edit of a queue that another manager owns can be drafted for its source, and not be saved.
  const isReadOnly = locked !== null && !(isForGit && isOwned && !isStale);
  const errorsWithoutField = verdict?.errors.filter((error) => !isPointer(error.pointer)) ?? [];
  const field = (pointer: Pointer) => (
    <BoundField
      key={pointer}
      pointer={pointer}
      entry={entries.get(pointer) ?? { kind: "unset", text: "" }}
      isChanged={changed.includes(pointer) || errors.has(pointer)}
      problem={errors.get(pointer)}
      error={messageAt(verdict?.errors, pointer)}
      warning={messageAt(verdict?.warnings, pointer)}
      disabled={isReadOnly}
      onChange={(entry) => editor.setEntry(pointer, entry)}
    />
  );
  const isSaving = phase.kind === "saving";
  const isTouched = changed.length > 0 || errors.size > 0;
  const reportTouched = useEffectEvent(onTouched);
  useEffect(() => reportTouched(isTouched), [isTouched]);
  const isValid = changed.length > 0 && errors.size === 0 && !isSaving && !preview.isRunning;
  const canSave = locked === null && isValid && (verdict?.errors.length ?? 0) === 0;
  const canDraft = canSave || (!isReadOnly && isOwned && isValid);
  const runPreview = async () => {
    const latest = await preview.run(patch);
    setPreviewedPatch(patchText);
    return latest;
  };
  /** Save, but ask first if pods would be evicted, or if nobody can tell. */
  const save = async () => {
    if (canChangeScheduling(patch)) {
      const latest = result ?? (await runPreview());
      if (latest.preview === null || latest.preview.verdict === "evicts") {
        setConfirming(latest);
        return;
      }
    }
    await editor.save();
  };
  const addToDraft = async () => {
    try {
      await draft.add({ name: queue.name, action: "update", edit: patch });
      editor.undo();
      reportDone(DRAFT.added, DRAFT.addedText(queue.name));
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      reportFailure(DRAFT.failed, error.message);
    }
  };
  return (
    <form
      aria-label={QUEUES.edit(queue.name)}
      onSubmit={(event) => {
        event.preventDefault();
        if (canSave) void save();
      }}
    >
      {locked !== null && (
        <div className={styles.summary}>
          {locked} {isForGit && isOwned && FORM.forGitNote}
          {isOwned && !isStale && !isForGit && (
            <Group gap="xs" mt={6}>
              <Button size="compact-sm" variant="default" onClick={() => setForGit(true)}>
                {FORM.forGit}
              </Button>
              {rights.admin && (
                <Button size="compact-sm" variant="default" onClick={() => setTakingOver(true)}>
                  {TAKE_OVER.button}
                </Button>
              )}
            </Group>
          )}
        </div>
      )}
      {isTakingOver && isOwned && (
        <TakeOverDialog queue={queue} onClose={() => setTakingOver(false)} />
      )}
      {inDraft !== undefined && (
        <p className={styles.summary}>
          {DRAFT.drafted} <Link to={`/changes/${draft.draft?.id}`}>{DRAFT.review}</Link>
        </p>
      )}
      <fieldset className={styles.group}>
        <legend>{FORM.general}</legend>
        {field("/displayName")}
        {field("/priority")}
        {field("/preemptMinRuntime")}
        {field("/reclaimMinRuntime")}
        {field("/maxRunTime")}
        {field("/requeueDelay")}
        {field("/labels")}
        {field("/userFairness")}
        {field("/gpuModels")}
      </fieldset>
      {RESOURCES.map((resource) => (
        <fieldset key={resource} className={styles.group}>
          <legend>{RESOURCE_NAME[resource]}</legend>
          {field(`/quota/${resource}`)}
          {field(`/limit/${resource}`)}
          {field(`/weight/${resource}`)}
        </fieldset>
      ))}
      {errorsWithoutField.map((error) => (
        <Failure key={error.message} title={FORM.rejected} detail={error.message} />
      ))}
      {failure !== null && <Failure title={failure.title} detail={failure.detail} />}
      {result?.preview && (
        <PreviewPanel
          preview={result.preview}
          edits={[{ name: queue.name, action: "update", edit: patch }]}
        />
      )}
      {result?.preview === null && <Failure title={PREVIEW.unavailable} detail={result.detail} />}
      <div className={styles.foot}>
        <span role="status">
          {preview.isRunning ? PREVIEW.running : statusText(phase, changed.length, errors.size)}
        </span>
        <Button
          variant="subtle"
          disabled={!canSave || !canChangeScheduling(patch)}
          onClick={() => void runPreview()}
        >
          {PREVIEW.run}
        </Button>
        <Button variant="default" disabled={!isTouched || isSaving} onClick={editor.undo}>
          {FORM.undo}
        </Button>
        <Button
          variant="default"
          disabled={!canDraft || draft.isAdding}
          onClick={() => void addToDraft()}
        >
          {DRAFT.add}
        </Button>
        <Button
          type="submit"
          loading={isSaving || preview.isRunning}
          disabled={!canSave && !isSaving && !preview.isRunning}
        >
          {FORM.save}
        </Button>
      </div>
      {confirming !== null && (
        <EvictionDialog
          result={confirming}
          onConfirm={() => {
            setConfirming(null);
            void editor.save();
          }}
          onClose={() => setConfirming(null)}
        />
      )}
      {conflict !== null && (
        <ConflictDialog
          conflict={conflict}
          onResolve={editor.resolve}
          onClose={editor.dismissConflict}
        />
      )}
    </form>
  );
}

/** Return what the form is doing now; every phase of saving has a text. */
function statusText(phase: Phase, changes: number, errors: number): string {
  if (phase.kind === "saving") return phase.isSlow ? FORM.savingSlow : FORM.saving;
  if (errors > 0) return FORM.corrections(errors);
  if (changes > 0) return FORM.changes(changes);
  if (phase.kind === "awaited") return phase.isSlow ? FORM.awaitingSlow : FORM.awaiting;
  return FORM.noChanges;
}

/** Return why the form is locked, or null if the user may edit the queue here. */
function lockedText(queue: Queue, rights: Props["rights"]): string | null {
  if (!rights.here) return rights.anywhere ? FORM.outside : FORM.viewer;
  if (queue.managedBy !== "") return FORM.managedElsewhere(queue.managedBy);
  return null;
}

function isPointer(pointer: string): boolean {
  return POINTERS.some((known) => known === pointer);
}

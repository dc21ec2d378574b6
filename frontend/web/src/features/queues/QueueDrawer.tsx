import { Button, Drawer } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useState } from "react";
import { Link } from "react-router";
import { useMe } from "../../api/useMe.ts";
import { dateTime, RESOURCE_NAME } from "../../i18n/numbers.ts";
import { FACTS, FORM, QUEUES } from "../../i18n/queues.ts";
import { CLOSE } from "../../i18n/ui.ts";
import type { Phase, Saved } from "../../model/editing.ts";
import { type Queue, RESOURCES } from "../../model/rows.ts";
import { POINTERS, type Pointer } from "../../model/values.ts";
import { Failure } from "../../ui/States.tsx";
import { BoundField } from "./BoundField.tsx";
import { ConflictDialog } from "./ConflictDialog.tsx";
import styles from "./QueueDrawer.module.css";
import { useQueueEditor } from "./useQueueEditor.ts";

type Props = { queue: Queue | undefined; onClose: () => void };

/** One queue: its amounts, and the form that edits its bounds. */
export function QueueDrawer({ queue, onClose }: Props) {
  // The content stays while the drawer closes, so that the focus returns to the row.
  const [last, setLast] = useState(queue);
  if (queue !== undefined && queue !== last) setLast(queue);
  const shown = queue ?? last;
  return (
    <Drawer
      opened={queue !== undefined}
      onClose={onClose}
      position="right"
      size={560}
      title={<b>{shown?.displayName || shown?.name}</b>}
      closeButtonProps={{ "aria-label": CLOSE }}
      overlayProps={{ backgroundOpacity: 0.25 }}
    >
      {shown !== undefined && (
        <>
          <Facts queue={shown} />
          {shown.problems.map((problem) => (
            <p key={problem} className={styles.summary}>
              {problem}
            </p>
          ))}
          <Editor key={shown.name} queue={shown} />
        </>
      )}
    </Drawer>
  );
}

function Facts({ queue }: { queue: Queue }) {
  return (
    <dl className={styles.facts}>
      <dt>{FACTS.name}</dt>
      <dd>{queue.name}</dd>
      <dt>{FACTS.parent}</dt>
      <dd>{queue.parent ?? FACTS.topLevel}</dd>
      {RESOURCES.map((resource) => (
        <FactLine key={resource} queue={queue} resource={resource} />
      ))}
      <dt>{FACTS.workloads}</dt>
      <dd>
        <Link to={`/workloads?queue=${encodeURIComponent(queue.name)}`}>
          {FACTS.workloadCounts(queue.runningWorkloads, queue.pendingWorkloads)}
        </Link>
      </dd>
      <dt>{FACTS.created}</dt>
      <dd>{dateTime(queue.createdAt)}</dd>
    </dl>
  );
}

function FactLine({ queue, resource }: { queue: Queue; resource: (typeof RESOURCES)[number] }) {
  const share = queue.share?.[resource] ?? null;
  return (
    <>
      <dt>{RESOURCE_NAME[resource]}</dt>
      <dd>
        {FACTS.resource(resource, queue.allocated[resource], queue.requested[resource], share)}
      </dd>
    </>
  );
}

function Editor({ queue }: { queue: Queue }) {
  const me = useMe();
  const editor = useQueueEditor(queue, (saved) => showSaved(queue.name, saved));
  const { entries, changed, errors, verdict, phase, failure, conflict } = editor;
  const locked = lockedText(queue, me?.rights.editQueues);
  const general = verdict?.errors.filter((error) => !isPointer(error.pointer)) ?? [];
  const field = (pointer: Pointer) => (
    <BoundField
      key={pointer}
      pointer={pointer}
      entry={entries.get(pointer) ?? { kind: "unset", text: "" }}
      isChanged={changed.includes(pointer) || errors.has(pointer)}
      problem={errors.get(pointer)}
      error={messageAt(verdict?.errors, pointer)}
      warning={messageAt(verdict?.warnings, pointer)}
      disabled={locked !== null}
      onChange={(entry) => editor.setEntry(pointer, entry)}
    />
  );
  const isSaving = phase.kind === "saving";
  const isTouched = changed.length > 0 || errors.size > 0;
  const canSave =
    changed.length > 0 && errors.size === 0 && (verdict?.errors.length ?? 0) === 0 && !isSaving;
  return (
    <form
      aria-label={QUEUES.edit(queue.name)}
      onSubmit={(event) => {
        event.preventDefault();
        if (canSave) void editor.save();
      }}
    >
      {locked !== null && <p className={styles.summary}>{locked}</p>}
      <fieldset className={styles.group}>
        <legend>{FORM.order}</legend>
        {field("/priority")}
      </fieldset>
      {RESOURCES.map((resource) => (
        <fieldset key={resource} className={styles.group}>
          <legend>{RESOURCE_NAME[resource]}</legend>
          {field(`/quota/${resource}`)}
          {field(`/limit/${resource}`)}
          {field(`/weight/${resource}`)}
        </fieldset>
      ))}
      {general.map((error) => (
        <Failure key={error.message} title={FORM.rejected} detail={error.message} />
      ))}
      {failure !== null && <Failure title={failure.title} detail={failure.detail} />}
      <div className={styles.foot}>
        <span role="status">{statusText(phase, changed.length, errors.size)}</span>
        <Button variant="default" disabled={!isTouched || isSaving} onClick={editor.undo}>
          {FORM.undo}
        </Button>
        <Button type="submit" loading={isSaving} disabled={!canSave && !isSaving}>
          {FORM.save}
        </Button>
      </div>
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

function showSaved(queue: string, { changed }: Saved): void {
  notifications.show({
    title: changed ? FORM.saved : FORM.unneeded,
    message: changed ? FORM.savedText(queue) : FORM.unneededText(queue),
    color: "green",
    closeButtonProps: { "aria-label": FORM.dismiss },
  });
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
function lockedText(queue: Queue, mayEdit: boolean | undefined): string | null {
  if (mayEdit === false) return FORM.viewer;
  if (queue.managedBy !== "") return FORM.managedElsewhere(queue.managedBy);
  return null;
}

function isPointer(pointer: string): boolean {
  return POINTERS.some((known) => known === pointer);
}

function messageAt(
  list: readonly { pointer: string; message: string }[] | undefined,
  pointer: Pointer,
): string | undefined {
  return list?.find((message) => message.pointer === pointer)?.message;
}

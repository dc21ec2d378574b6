import { Button, Drawer } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useState } from "react";
import { Link } from "react-router";
import { useMe } from "../../api/useMe.ts";
import type { Pointer } from "../../model/editing.ts";
import { type Queue, RESOURCES } from "../../model/rows.ts";
import { amount, count, dateTime, RESOURCE_NAME, UNIT } from "../../model/units.ts";
import { Failure } from "../../ui/States.tsx";
import { BoundField } from "./BoundField.tsx";
import { ConflictDialog } from "./ConflictDialog.tsx";
import styles from "./QueueDrawer.module.css";
import { useQueueEditor } from "./useQueueEditor.ts";

type Props = { queue: Queue | undefined; onClose: () => void };

/** One queue: what it has and wants, and the form that edits its bounds. */
export function QueueDrawer({ queue, onClose }: Props) {
  // Stays in place while closing, so that the focus finds its way back to the row.
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
      closeButtonProps={{ "aria-label": "Close" }}
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
      <dt>Name</dt>
      <dd>{queue.name}</dd>
      <dt>Parent</dt>
      <dd>{queue.parent ?? "none: a top-level queue"}</dd>
      {RESOURCES.map((resource) => (
        <FactLine key={resource} queue={queue} resource={resource} />
      ))}
      <dt>Workloads</dt>
      <dd>
        <Link to={`/workloads?queue=${encodeURIComponent(queue.name)}`}>
          {count(queue.runningWorkloads)} running, {count(queue.pendingWorkloads)} pending
        </Link>
      </dd>
      <dt>Created</dt>
      <dd>{dateTime(queue.createdAt)}</dd>
    </dl>
  );
}

function FactLine({ queue, resource }: { queue: Queue; resource: (typeof RESOURCES)[number] }) {
  const share = queue.share === null ? "not computed yet" : amount(resource, queue.share[resource]);
  return (
    <>
      <dt>{RESOURCE_NAME[resource]}</dt>
      <dd>
        {amount(resource, queue.allocated[resource])} of{" "}
        {amount(resource, queue.requested[resource])} {UNIT[resource]} asked for · fair share{" "}
        {share}
      </dd>
    </>
  );
}

function Editor({ queue }: { queue: Queue }) {
  const me = useMe();
  const editor = useQueueEditor(queue, (answer) => {
    notifications.show({
      title: answer.changed ? "Saved" : "Nothing to change",
      message: `Queue ${queue.name}: the cluster has the new values.`,
      color: "green",
      closeButtonProps: { "aria-label": "Dismiss" },
    });
  });
  const locked = lockedBecause(queue, me?.rights.editQueues);
  const general =
    editor.verdict?.errors.filter((error) => !editor.entries.has(error.pointer as Pointer)) ?? [];
  const field = (pointer: Pointer) => (
    <BoundField
      key={pointer}
      pointer={pointer}
      entry={editor.entries.get(pointer) ?? { kind: "unset", text: "" }}
      isChanged={editor.changed.includes(pointer)}
      error={editor.errors.get(pointer) ?? messageAt(editor.verdict?.errors, pointer)}
      warning={messageAt(editor.verdict?.warnings, pointer)}
      disabled={locked !== null}
      onChange={(entry) => editor.setEntry(pointer, entry)}
    />
  );
  const hasErrors = editor.errors.size > 0 || (editor.verdict?.errors.length ?? 0) > 0;
  return (
    <form
      aria-label={`Edit ${queue.name}`}
      onSubmit={(event) => {
        event.preventDefault();
        if (!hasErrors && editor.changed.length > 0) editor.save();
      }}
    >
      {locked !== null && <p className={styles.summary}>{locked}</p>}
      <fieldset className={styles.group}>
        <legend>Order</legend>
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
        <Failure key={error.message} title="The server would refuse this" detail={error.message} />
      ))}
      {editor.failure !== null && (
        <Failure title={editor.failure.body.title} detail={editor.failure.message} />
      )}
      <div className={styles.foot}>
        <span role="status">{changeWords(editor.changed.length)}</span>
        <Button variant="default" disabled={editor.changed.length === 0} onClick={editor.reset}>
          Undo changes
        </Button>
        <Button
          type="submit"
          loading={editor.saving}
          disabled={hasErrors || editor.changed.length === 0}
        >
          Save
        </Button>
      </div>
      {editor.conflict !== null && (
        <ConflictDialog
          conflict={editor.conflict}
          onResolve={editor.resolve}
          onClose={editor.dismissConflict}
        />
      )}
    </form>
  );
}

/** Disabled controls say why. */
function lockedBecause(queue: Queue, mayEdit: boolean | undefined): string | null {
  if (mayEdit === false) return "You may look at queues but not edit them: ask an administrator.";
  if (queue.managedBy !== "") return `${queue.managedBy} manages this queue: edit it there.`;
  return null;
}

function messageAt(
  list: readonly { pointer: string; message: string }[] | undefined,
  pointer: Pointer,
): string | undefined {
  return list?.find((each) => each.pointer === pointer)?.message;
}

function changeWords(changes: number): string {
  if (changes === 0) return "No changes";
  return changes === 1 ? "1 field changed" : `${changes} fields changed`;
}

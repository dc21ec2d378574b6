import { useDraft } from "../../../editing/useDraft.ts";
import { draftOf, useReportUndoable } from "../../../editing/useUndo.ts";
import { DELETE_QUEUE, MOVE_QUEUE, NEW_QUEUE } from "../../../i18n/queues.ts";
import { mayPlaceUnder } from "../../../model/rights.ts";
import type { Me, Queue, QueuePatch } from "../../../model/rows.ts";
import { ancestors } from "../../../model/tree.ts";
import { editableValues, patchOf } from "../../../model/values.ts";
import { ChildrenDialog } from "./ChildrenDialog.tsx";
import { DeleteQueueDialog } from "./DeleteQueueDialog.tsx";
import { MoveQueueDialog } from "./MoveQueueDialog.tsx";
import { DEFAULTS, NewQueueDialog } from "./NewQueueDialog.tsx";

/** What the user wants to do. `queue` is the name of the parent for `create`, else that of the queue to act on. */
export type QueueAction = {
  readonly kind: "create" | "duplicate" | "move" | "children" | "delete";
  readonly queue: string | null;
  /** For `move`: the new parent that the user has chosen already; null is the top level. */
  readonly target?: string | null;
};

type Props = {
  action: QueueAction;
  queues: ReadonlyMap<string, Queue>;
  me: Me | undefined;
  /** Close the dialog and select a queue, or none; undefined keeps the selection. */
  onDone: (selected?: string | null) => void;
};

/** The dialog of the action that the user has begun. */
export function QueueDialogs({ action, queues, me, onDone }: Props) {
  const reportUndoable = useReportUndoable();
  const { edits } = useDraft();
  const queue = action.queue === null ? undefined : queues.get(action.queue);
  const names = [...queues.keys()].sort();
  const places = [null, ...names].filter((place) => mayPlaceUnder(me, queues, place));
  const close = () => onDone();
  if (action.kind === "create" || action.kind === "duplicate") {
    const isCopy = action.kind === "duplicate";
    return (
      <NewQueueDialog
        parent={isCopy ? (queue?.parent ?? null) : action.queue}
        values={isCopy && queue !== undefined ? editableValues(queue) : DEFAULTS}
        places={places}
        draftedPlaces={edits.filter((edit) => edit.action === "create").map(({ name }) => name)}
        onDrafted={close}
        onCreated={(name) => {
          reportUndoable(NEW_QUEUE.created, NEW_QUEUE.createdText(name), () =>
            draftOf({ name, action: "delete", edit: {} }),
          );
          onDone(name);
        }}
        onClose={close}
      />
    );
  }
  if (queue === undefined) return null;
  if (action.kind === "children") {
    const children = [...queues.values()].filter(({ parent }) => parent === queue.name);
    return <ChildrenDialog queue={queue} rows={children} onClose={close} />;
  }
  if (action.kind === "delete") {
    return (
      <DeleteQueueDialog
        queue={queue}
        onDrafted={close}
        onDeleted={() => {
          reportUndoable(DELETE_QUEUE.deleted, DELETE_QUEUE.deletedText(queue.name), () =>
            draftOf({ name: queue.name, action: "create", edit: asNew(queue) }),
          );
          onDone(null);
        }}
        onClose={close}
      />
    );
  }
  const isInSubtree = (place: string) =>
    place === queue.name || ancestors(queues, place).includes(queue.name);
  return (
    <MoveQueueDialog
      queue={queue}
      below={[...queues.keys()].filter(isInSubtree).length - 1}
      places={places.filter((place) => place === null || !isInSubtree(place))}
      target={action.target}
      onDrafted={close}
      onMoved={(parent) => {
        reportUndoable(MOVE_QUEUE.moved, MOVE_QUEUE.movedText(queue.name, parent), () =>
          draftOf({ name: queue.name, action: "update", edit: { parent: queue.parent } }),
        );
        onDone();
      }}
      onClose={close}
    />
  );
}

/** Return the edit that creates a queue again as it was. */
function asNew(queue: Queue): QueuePatch {
  const fields = patchOf(DEFAULTS, editableValues(queue));
  return { ...fields, parent: queue.parent };
}

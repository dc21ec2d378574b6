import { DELETE_QUEUE, MOVE_QUEUE, NEW_QUEUE } from "../../i18n/queues.ts";
import { mayPlaceUnder } from "../../model/rights.ts";
import type { Me, Queue } from "../../model/rows.ts";
import { ancestors } from "../../model/tree.ts";
import { editableValues } from "../../model/values.ts";
import { reportDone } from "../../ui/reportDone.ts";
import { DeleteQueueDialog } from "./DeleteQueueDialog.tsx";
import { MoveQueueDialog } from "./MoveQueueDialog.tsx";
import { DEFAULTS, NewQueueDialog } from "./NewQueueDialog.tsx";

/** What the user wants to do. `queue` is the name of the parent for `create`, else that of the queue to act on. */
export type QueueAction = {
  readonly kind: "create" | "duplicate" | "move" | "delete";
  readonly queue: string | null;
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
        onCreated={(name) => {
          reportDone(NEW_QUEUE.created, NEW_QUEUE.createdText(name));
          onDone(name);
        }}
        onClose={close}
      />
    );
  }
  if (queue === undefined) return null;
  if (action.kind === "delete") {
    return (
      <DeleteQueueDialog
        queue={queue}
        onDeleted={() => {
          reportDone(DELETE_QUEUE.deleted, DELETE_QUEUE.deletedText(queue.name));
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
      onMoved={(parent) => {
        reportDone(MOVE_QUEUE.moved, MOVE_QUEUE.movedText(queue.name, parent));
        onDone();
      }}
      onClose={close}
    />
  );
}

import { deleteQueue } from "../../api/client.ts";
import { DELETE_QUEUE } from "../../i18n/queues.ts";
import type { Queue } from "../../model/rows.ts";
import { QueueDialog } from "./QueueDialog.tsx";
import { useVerdict } from "./useVerdict.ts";

type Props = { queue: Queue; onDeleted: () => void; onClose: () => void };

/** Deletes a queue after the server has said whether it would refuse that. */
export function DeleteQueueDialog({ queue, onDeleted, onClose }: Props) {
  const { name, etag } = queue;
  const verdict = useVerdict(`DELETE ${name} ${etag}`, true, (signal) =>
    deleteQueue(name, { etag, dryRun: true, signal }),
  );
  return (
    <QueueDialog
      title={DELETE_QUEUE.title(name)}
      submitText={DELETE_QUEUE.submit}
      isDangerous
      isReady={verdict !== null}
      verdict={verdict}
      onSubmit={() => deleteQueue(name, { etag, dryRun: false })}
      onDone={onDeleted}
      onClose={onClose}
    >
      <p>{DELETE_QUEUE.text}</p>
    </QueueDialog>
  );
}

import { TextInput } from "@mantine/core";
import { useState } from "react";
import { deleteQueue } from "../../../api/client.ts";
import { useVerdict } from "../../../editing/useVerdict.ts";
import { DELETE_QUEUE } from "../../../i18n/queues.ts";
import type { Queue } from "../../../model/rows.ts";
import { QueueDialog } from "./QueueDialog.tsx";

type Props = { queue: Queue; onDeleted: () => void; onDrafted: () => void; onClose: () => void };

/** Deletes a queue after the server has said whether it would refuse that; one with workloads once its name is typed. */
export function DeleteQueueDialog({ queue, onDeleted, onDrafted, onClose }: Props) {
  const { name, etag, totalWorkloads } = queue;
  const [typed, setTyped] = useState("");
  const verdict = useVerdict(`DELETE ${name} ${etag}`, true, (signal) =>
    deleteQueue(name, { etag, dryRun: true, signal }),
  );
  return (
    <QueueDialog
      title={DELETE_QUEUE.title(name)}
      submitText={DELETE_QUEUE.submit}
      isDangerous
      isReady={verdict !== null}
      canWrite={totalWorkloads === 0 || typed === name}
      verdict={verdict}
      edit={{ name, action: "delete", edit: {} }}
      onDrafted={onDrafted}
      onSubmit={() => deleteQueue(name, { etag, dryRun: false })}
      onDone={onDeleted}
      onClose={onClose}
    >
      <p>{DELETE_QUEUE.text}</p>
      {totalWorkloads > 0 && (
        <TextInput
          label={DELETE_QUEUE.typed(name)}
          data-autofocus
          autoComplete="off"
          value={typed}
          onChange={(event) => setTyped(event.currentTarget.value)}
        />
      )}
    </QueueDialog>
  );
}

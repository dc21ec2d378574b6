import { TextInput } from "@mantine/core";
import { useState } from "react";
import { takeOverQueue } from "../../../api/client.ts";
import { TAKE_OVER } from "../../../i18n/queues.ts";
import type { Queue } from "../../../model/rows.ts";
import { reportDone } from "../../../ui/reportDone.tsx";
import { WriteForm } from "../../../ui/WriteForm.tsx";

/** Takes a queue over from its manager, after its name was typed as a confirmation. */
export function TakeOverDialog({ queue, onClose }: { queue: Queue; onClose: () => void }) {
  const { name, managedBy } = queue;
  const [typed, setTyped] = useState("");
  const [reason, setReason] = useState("");
  return (
    <WriteForm
      title={TAKE_OVER.title(name)}
      submitText={TAKE_OVER.submit}
      isReady={typed.trim() === managedBy && reason.trim() !== ""}
      isDangerous
      onSubmit={() => takeOverQueue(name, managedBy, reason.trim())}
      onDone={() => {
        reportDone(TAKE_OVER.done, TAKE_OVER.doneText(name));
        onClose();
      }}
      onClose={onClose}
    >
      <p>{TAKE_OVER.text(managedBy)}</p>
      <TextInput
        label={TAKE_OVER.reason}
        required
        data-autofocus
        maxLength={1000}
        value={reason}
        onChange={(event) => setReason(event.currentTarget.value)}
        mb="sm"
      />
      <TextInput
        label={TAKE_OVER.confirm(managedBy)}
        required
        autoComplete="off"
        value={typed}
        onChange={(event) => setTyped(event.currentTarget.value)}
      />
    </WriteForm>
  );
}

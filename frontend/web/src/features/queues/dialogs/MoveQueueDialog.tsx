import { Select } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { patchQueue } from "../../../api/client.ts";
import { PreviewPanel } from "../../../editing/PreviewPanel.tsx";
import { askPreview } from "../../../editing/usePreview.ts";
import { messageAt, useVerdict } from "../../../editing/useVerdict.ts";
import { PREVIEW } from "../../../i18n/preview.ts";
import { MOVE_QUEUE, NEW_QUEUE } from "../../../i18n/queues.ts";
import type { Queue } from "../../../model/rows.ts";
import { IN_DIALOG } from "../../../ui/Dialog.tsx";
import { Failure } from "../../../ui/States.tsx";
import { placeChoices } from "./NewQueueDialog.tsx";
import { QueueDialog } from "./QueueDialog.tsx";

type Props = {
  queue: Queue;
  /** How many queues are below it. */
  below: number;
  /** The queues below which the user may place it; null stands for the top level. */
  places: readonly (string | null)[];
  /** The place that is chosen at first; without it the present one. */
  target?: string | null | undefined;
  onMoved: (parent: string | null) => void;
  onDrafted: () => void;
  onClose: () => void;
};

/** Moves a queue, with all below it, to another parent. */
export function MoveQueueDialog({
  queue,
  below,
  places,
  target,
  onMoved,
  onDrafted,
  onClose,
}: Props) {
  const [parent, setParent] = useState((target === undefined ? queue.parent : target) ?? "");
  const isMoved = parent !== (queue.parent ?? "");
  const patch = { parent: parent === "" ? null : parent };
  const { etag } = queue;
  const verdict = useVerdict(`MOVE ${queue.name} ${etag} ${parent}`, isMoved, (signal) =>
    patchQueue(queue.name, patch, { etag, dryRun: true, signal }),
  );
  const isPossible = isMoved && verdict !== null && verdict.errors.length === 0;
  const { data: result, isFetching } = useQuery({
    queryKey: ["queue-move-preview", queue.name, etag, parent],
    queryFn: () => askPreview(queue.name, patch),
    enabled: isPossible,
    retry: false,
  });
  return (
    <QueueDialog
      title={MOVE_QUEUE.title(queue.name)}
      submitText={MOVE_QUEUE.submit}
      isReady={isPossible && !isFetching}
      verdict={verdict}
      fields={["/parent"]}
      edit={{ name: queue.name, action: "update", edit: patch }}
      onDrafted={onDrafted}
      onSubmit={() => patchQueue(queue.name, patch, { etag, dryRun: false })}
      onDone={() => onMoved(patch.parent)}
      onClose={onClose}
    >
      <Select
        label={NEW_QUEUE.parent}
        data={placeChoices(places)}
        data-autofocus
        value={parent}
        searchable
        allowDeselect={false}
        comboboxProps={IN_DIALOG}
        limit={100}
        // So that typing replaces the present parent instead of adding to its name.
        onFocus={(event) => event.currentTarget.select()}
        error={messageAt(verdict?.errors, "/parent")}
        onChange={(value) => setParent(value ?? "")}
      />
      <p>{messageAt(verdict?.warnings, "/parent") ?? MOVE_QUEUE.text(below)}</p>
      {isFetching && <p role="status">{PREVIEW.running}</p>}
      {isPossible && result?.preview && <PreviewPanel preview={result.preview} />}
      {isPossible && result?.preview === null && (
        <Failure title={PREVIEW.unavailable} detail={result.detail} />
      )}
    </QueueDialog>
  );
}

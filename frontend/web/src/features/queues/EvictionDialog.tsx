import { Button, Group, Modal } from "@mantine/core";
import { PREVIEW } from "../../i18n/preview.ts";
import { CLOSE } from "../../i18n/ui.ts";
import { Failure } from "../../ui/States.tsx";
import { PreviewPanel } from "./PreviewPanel.tsx";
import type { PreviewResult } from "./usePreview.ts";

type Props = { result: PreviewResult; onConfirm: () => void; onClose: () => void };

/** Asks before an edit that evicts pods, or whose effect could not be computed, is saved. */
export function EvictionDialog({ result, onConfirm, onClose }: Props) {
  const isKnown = result.preview !== null;
  const title = isKnown ? PREVIEW.confirmTitle : PREVIEW.unavailable;
  return (
    <Modal
      opened
      onClose={onClose}
      size="lg"
      title={<b>{title}</b>}
      closeButtonProps={{ "aria-label": CLOSE }}
    >
      {result.preview === null ? (
        <Failure title={PREVIEW.unavailable} detail={result.detail} />
      ) : (
        <PreviewPanel preview={result.preview} />
      )}
      <Group justify="flex-end" mt="md">
        <Button variant="default" data-autofocus onClick={onClose}>
          {PREVIEW.back}
        </Button>
        <Button color="red.9" onClick={onConfirm}>
          {isKnown ? PREVIEW.confirm : PREVIEW.confirmWithout}
        </Button>
      </Group>
    </Modal>
  );
}

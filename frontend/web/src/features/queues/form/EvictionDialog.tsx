import { PreviewPanel } from "../../../editing/PreviewPanel.tsx";
import type { PreviewResult } from "../../../editing/usePreview.ts";
import { PREVIEW } from "../../../i18n/preview.ts";
import { Dialog } from "../../../ui/Dialog.tsx";
import { DialogButtons } from "../../../ui/DialogButtons.tsx";
import { Failure } from "../../../ui/States.tsx";

type Props = { result: PreviewResult; onConfirm: () => void; onClose: () => void };

/** Asks before an edit that evicts pods, or whose effect could not be computed, is saved. */
export function EvictionDialog({ result, onConfirm, onClose }: Props) {
  const isKnown = result.preview !== null;
  const title = isKnown ? PREVIEW.confirmTitle : PREVIEW.unavailable;
  return (
    <Dialog title={title} onClose={onClose}>
      {result.preview === null ? (
        <Failure title={PREVIEW.unavailable} detail={result.detail} />
      ) : (
        <PreviewPanel preview={result.preview} />
      )}
      <DialogButtons
        cancelText={PREVIEW.back}
        confirmText={isKnown ? PREVIEW.confirm : PREVIEW.confirmWithout}
        onCancel={onClose}
        onConfirm={onConfirm}
      />
    </Dialog>
  );
}

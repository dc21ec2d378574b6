import { Button } from "@mantine/core";
import { IconPencil } from "@tabler/icons-react";
import { useState } from "react";
import { Link, useLocation } from "react-router";
import { DRAFT } from "../i18n/changes.ts";
import { Dialog } from "../ui/Dialog.tsx";
import { DialogButtons } from "../ui/DialogButtons.tsx";
import { Badge } from "../ui/StateBadge.tsx";
import styles from "./DraftTray.module.css";
import { useDraft } from "./useDraft.ts";

/** What the draft holds, at the bottom of every page, until it is reviewed or discarded. */
export function DraftTray() {
  const { draft, discard } = useDraft();
  const { pathname } = useLocation();
  const [isDiscarding, setDiscarding] = useState(false);
  if (draft === null || pathname === `/changes/${draft.id}`) return null;
  const close = () => setDiscarding(false);
  return (
    <section className={styles.tray} aria-label={DRAFT.label}>
      <IconPencil size={16} aria-hidden />
      <b>{DRAFT.label}</b>
      <span className={styles.queues} role="status">
        {DRAFT.queues(draft.queues)}
      </span>
      {draft.errors.length > 0 && <Badge tone="bad">{DRAFT.errors(draft.errors.length)}</Badge>}
      <Button size="xs" variant="default" onClick={() => setDiscarding(true)}>
        {DRAFT.discard}
      </Button>
      <Button size="xs" component={Link} to={`/changes/${draft.id}`}>
        {DRAFT.review}
      </Button>
      {isDiscarding && (
        <Dialog title={DRAFT.discardTitle} size="md" onClose={close}>
          <p>{DRAFT.discardText(draft.queues)}</p>
          <DialogButtons
            cancelText={DRAFT.keep}
            confirmText={DRAFT.discard}
            onCancel={close}
            onConfirm={() => void discard().then(close)}
          />
        </Dialog>
      )}
    </section>
  );
}

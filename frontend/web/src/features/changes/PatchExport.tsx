import { Button } from "@mantine/core";
import { useState } from "react";
import { CHANGE } from "../../i18n/changes.ts";
import type { Change } from "../../model/rows.ts";
import { Dialog } from "../../ui/Dialog.tsx";
import { YamlView } from "../../ui/YamlView.tsx";
import styles from "./Change.module.css";

/** The edits as patches for Git, offered for every change and recommended where Git owns a queue of it. */
export function PatchExport({ change }: { change: Change }) {
  const [isOpen, setOpen] = useState(false);
  const owners = new Set(
    change.errors.filter(({ code }) => code === "field-owned").map(({ given }) => String(given)),
  );
  return (
    <>
      {owners.size > 0 && (
        <p className={styles.warning}>{CHANGE.exportText([...owners].join(", "))}</p>
      )}
      <Button
        size="compact-sm"
        variant={owners.size > 0 ? "filled" : "default"}
        onClick={() => setOpen(true)}
      >
        {CHANGE.exportPatch}
      </Button>
      {isOpen && (
        <Dialog title={CHANGE.patch} size="xl" onClose={() => setOpen(false)}>
          <YamlView
            path={`/changes/${change.id}/patch`}
            file="queues-patch.yaml"
            title={CHANGE.patch}
          />
        </Dialog>
      )}
    </>
  );
}

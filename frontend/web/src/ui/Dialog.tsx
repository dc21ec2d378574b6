import { Modal } from "@mantine/core";
import type { ReactNode } from "react";
import { CLOSE } from "../i18n/ui.ts";

type Props = {
  title: string;
  size?: "md" | "lg" | "xl";
  opened?: boolean;
  onClose: () => void;
  children: ReactNode;
};

/** How the options of a select in a dialog open: within its landmark, and not cut off where the dialog ends. */
export const IN_DIALOG = { withinPortal: false, floatingStrategy: "fixed" } as const;

/** A dialog over the page, with its title and a button that closes it. */
export function Dialog({ title, size = "lg", opened = true, onClose, children }: Props) {
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      size={size}
      title={<b>{title}</b>}
      // Without a transform, within which options of a select would be cut off where the dialog ends.
      transitionProps={{ transition: "fade" }}
      closeButtonProps={{ "aria-label": CLOSE }}
    >
      {children}
    </Modal>
  );
}

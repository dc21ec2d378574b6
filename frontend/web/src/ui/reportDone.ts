import { notifications } from "@mantine/notifications";
import { DISMISS } from "../i18n/ui.ts";

/** Report for a moment that a write has succeeded. */
export function reportDone(title: string, message: string): void {
  notifications.show({
    title,
    message,
    color: "green",
    closeButtonProps: { "aria-label": DISMISS },
  });
}

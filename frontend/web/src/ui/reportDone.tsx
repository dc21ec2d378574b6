import { Button } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { DISMISS } from "../i18n/ui.ts";

/** What the notification offers to do next, such as undoing what was done. */
export type NextStep = { readonly text: string; readonly run: () => void };

/** How long a notification with a button stays: long enough to read it and to reach the button. */
const BUTTON_MS = 12_000;

/** Report for a moment that a write has succeeded. */
export function reportDone(title: string, message: string, next?: NextStep): void {
  const id = notifications.show({
    title,
    message:
      next === undefined ? (
        message
      ) : (
        <>
          <div>{message}</div>
          <Button
            size="compact-sm"
            variant="default"
            mt={6}
            onClick={() => {
              notifications.hide(id);
              next.run();
            }}
          >
            {next.text}
          </Button>
        </>
      ),
    color: "green",
    ...(next === undefined ? {} : { autoClose: BUTTON_MS }),
    closeButtonProps: { "aria-label": DISMISS },
  });
}

/** Report that something the user asked for has failed, where no form can show it. */
export function reportFailure(title: string, message: string): void {
  notifications.show({
    title,
    message,
    color: "red",
    autoClose: false,
    closeButtonProps: { "aria-label": DISMISS },
  });
}

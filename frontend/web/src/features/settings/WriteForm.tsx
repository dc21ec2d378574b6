import { Button, Group } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { SETTINGS } from "../../i18n/settings.ts";
import { Dialog } from "../../ui/Dialog.tsx";
import { Failure } from "../../ui/States.tsx";

type Props<T> = {
  title: string;
  submitText: string;
  isReady: boolean;
  onSubmit: () => Promise<T>;
  onDone: (result: T) => void;
  onClose: () => void;
  children: ReactNode;
};

/** A dialog with a form for one write, which says why the server refused it. */
export function WriteForm<T>(props: Props<T>) {
  const { title, submitText, isReady, onSubmit, onDone, onClose, children } = props;
  const write = useMutation({ mutationFn: onSubmit, onSuccess: onDone });
  return (
    <Dialog title={title} size="md" onClose={onClose}>
      <form
        aria-label={title}
        onSubmit={(event) => {
          event.preventDefault();
          if (isReady && !write.isPending) write.mutate();
        }}
      >
        {children}
        {write.error !== null && <Failure title={SETTINGS.refused} detail={write.error.message} />}
        <Group justify="flex-end" mt="md">
          <Button variant="default" onClick={onClose}>
            {SETTINGS.cancel}
          </Button>
          <Button type="submit" loading={write.isPending} disabled={!isReady}>
            {submitText}
          </Button>
        </Group>
      </form>
    </Dialog>
  );
}

import { Button, Group } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { CANCEL, REFUSED } from "../i18n/ui.ts";
import { Dialog } from "./Dialog.tsx";
import { Failure } from "./States.tsx";

type Props<T> = {
  title: string;
  size?: "md" | "xl";
  submitText: string;
  failureTitle?: string;
  isReady: boolean;
  isDangerous?: boolean;
  onSubmit: () => Promise<T>;
  onDone: (result: T) => void;
  onClose: () => void;
  children: ReactNode;
};

/** A dialog with a form for one write, which says why the server refused it. */
export function WriteForm<T>(props: Props<T>) {
  const { title, submitText, isReady, isDangerous = false, onClose, children } = props;
  // `onDone` is that of the render which was submitted: the page may show the write before the answer to it arrives.
  const write = useMutation({
    mutationFn: ({ onSubmit }: Props<T>) => onSubmit(),
    onSuccess: (result, { onDone }) => onDone(result),
  });
  return (
    <Dialog title={title} size={props.size ?? "md"} onClose={onClose}>
      <form
        aria-label={title}
        onSubmit={(event) => {
          event.preventDefault();
          if (isReady && !write.isPending) write.mutate(props);
        }}
      >
        {children}
        {write.error !== null && (
          <Failure title={props.failureTitle ?? REFUSED} detail={write.error.message} />
        )}
        <Group justify="flex-end" mt="md">
          <Button variant="default" onClick={onClose}>
            {CANCEL}
          </Button>
          <Button
            type="submit"
            loading={write.isPending}
            disabled={!isReady}
            {...(isDangerous ? { color: "red.9" } : {})}
          >
            {submitText}
          </Button>
        </Group>
      </form>
    </Dialog>
  );
}

import { Alert, Button, Group, Modal } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { ApiProblem } from "../../api/problem.ts";
import { NEW_QUEUE } from "../../i18n/queues.ts";
import { CLOSE } from "../../i18n/ui.ts";
import { Failure } from "../../ui/States.tsx";
import type { Verdict } from "./useVerdict.ts";

type Props = {
  title: string;
  submitText: string;
  isDangerous?: boolean;
  /** Whether the form is complete; the server's errors disable the button as well. */
  isReady: boolean;
  verdict: Verdict | null;
  /** Pointers whose messages the fields themselves show. */
  fields?: readonly string[];
  onSubmit: () => Promise<unknown>;
  onDone: () => void;
  onClose: () => void;
  children: ReactNode;
};

/** A dialog for one write: its form, what the server says about it beforehand, and why it failed. */
export function QueueDialog(props: Props) {
  const { verdict, fields = [], onDone, onClose } = props;
  const write = useMutation({ mutationFn: props.onSubmit, onSuccess: onDone });
  const errors = withoutField(verdict?.errors, fields);
  const warnings = withoutField(verdict?.warnings, fields);
  const canSubmit = props.isReady && (verdict?.errors.length ?? 0) === 0 && !write.isPending;
  return (
    <Modal
      opened
      onClose={onClose}
      size="lg"
      title={<b>{props.title}</b>}
      closeButtonProps={{ "aria-label": CLOSE }}
    >
      <form
        aria-label={props.title}
        onSubmit={(event) => {
          event.preventDefault();
          if (canSubmit) write.mutate();
        }}
      >
        {props.children}
        {errors.map((message) => (
          <Failure key={message} title={message} detail="" />
        ))}
        {warnings.map((message) => (
          <Alert key={message} color="yellow" variant="light" mt="sm">
            {message}
          </Alert>
        ))}
        {write.error !== null && <WriteFailure error={write.error} />}
        <Group justify="flex-end" mt="md">
          <Button variant="default" onClick={onClose}>
            {NEW_QUEUE.cancel}
          </Button>
          <Button
            type="submit"
            loading={write.isPending}
            disabled={!canSubmit && !write.isPending}
            {...(props.isDangerous === true ? { color: "red.9" } : {})}
          >
            {props.submitText}
          </Button>
        </Group>
      </form>
    </Modal>
  );
}

function WriteFailure({ error }: { error: Error }) {
  const title = error instanceof ApiProblem ? error.body.title : error.name;
  return <Failure title={title} detail={error.message} />;
}

/** Return the messages that no field of the form shows, each once. */
function withoutField(
  messages: Verdict["errors"] | undefined,
  fields: readonly string[],
): string[] {
  const others = messages?.filter(({ pointer }) => !fields.includes(pointer)) ?? [];
  return [...new Set(others.map(({ message }) => message))];
}

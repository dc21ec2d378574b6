import { Alert, Button, Group } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { ApiProblem } from "../../../api/problem.ts";
import { useDraft } from "../../../editing/useDraft.ts";
import type { Verdict } from "../../../editing/useVerdict.ts";
import { DRAFT } from "../../../i18n/changes.ts";
import { CANCEL, REFUSED } from "../../../i18n/ui.ts";
import type { DraftEdit } from "../../../model/draft.ts";
import { Dialog } from "../../../ui/Dialog.tsx";
import { reportDone } from "../../../ui/reportDone.tsx";
import { Failure } from "../../../ui/States.tsx";

type Props = {
  title: string;
  submitText: string;
  isDangerous?: boolean;
  /** Whether the form is complete; the server's errors disable the button as well. */
  isReady: boolean;
  verdict: Verdict | null;
  /** Pointers whose messages the fields themselves show. */
  fields?: readonly string[];
  /** Whether the write can be made now; one that builds on a draft cannot. */
  canWrite?: boolean;
  /** The same write as an edit of the draft. */
  edit: DraftEdit;
  onSubmit: () => Promise<unknown>;
  onDone: () => void;
  /** Called when the edit is in the draft. */
  onDrafted: () => void;
  onClose: () => void;
  children: ReactNode;
};

/** A dialog for one write: its form, what the server says about it beforehand, and why it failed. */
export function QueueDialog(props: Props) {
  const { verdict, fields = [], onClose } = props;
  const draft = useDraft();
  // `onDone` is that of the render which was submitted: rows may show the write before the answer to it arrives.
  const write = useMutation({
    mutationFn: ({ onSubmit }: Props) => onSubmit(),
    onSuccess: (_, { onDone }) => onDone(),
  });
  const addition = useMutation({
    mutationFn: () => draft.add(props.edit),
    onSuccess: () => {
      reportDone(DRAFT.added, DRAFT.addedText(props.edit.name));
      props.onDrafted();
    },
  });
  const isBusy = write.isPending || addition.isPending;
  const error = write.error ?? addition.error;
  const errors = withoutField(verdict?.errors, fields);
  const warnings = withoutField(verdict?.warnings, fields);
  const isValid = props.isReady && (verdict?.errors.length ?? 0) === 0 && !isBusy;
  const canSubmit = isValid && props.canWrite !== false;
  return (
    <Dialog title={props.title} onClose={onClose}>
      <form
        aria-label={props.title}
        onSubmit={(event) => {
          event.preventDefault();
          if (canSubmit) write.mutate(props);
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
        {error !== null && <WriteFailure error={error} />}
        <Group justify="flex-end" mt="md">
          <Button variant="default" onClick={onClose}>
            {CANCEL}
          </Button>
          <Button
            variant="default"
            disabled={!isValid}
            loading={addition.isPending}
            onClick={() => addition.mutate()}
          >
            {DRAFT.add}
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
    </Dialog>
  );
}

function WriteFailure({ error }: { error: Error }) {
  const title = error instanceof ApiProblem ? error.body.title : REFUSED;
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

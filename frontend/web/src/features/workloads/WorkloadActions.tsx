import { Button, Group, Select, TextInput, Tooltip } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { useMe } from "../../api/useMe.ts";
import { actOnWorkload } from "../../api/workloads.ts";
import { ACTION_TEXTS, WORKLOAD_ACTIONS } from "../../i18n/actions.ts";
import { useTopic } from "../../live/react.tsx";
import { mayActOnWork } from "../../model/rights.ts";
import type { Workload, WorkloadAction } from "../../model/rows.ts";
import { Dialog } from "../../ui/Dialog.tsx";
import { reportDone } from "../../ui/reportDone.tsx";
import { Failure } from "../../ui/States.tsx";
import { useStale } from "../../ui/useStale.ts";
import { actionsFor, holdEnd } from "./actions.ts";

/** The buttons that act on a workload; locked with the reason where the user may not. */
export function WorkloadActions({ workload }: { workload: Workload }) {
  const me = useMe();
  const { rows: queues, loaded } = useTopic("queues");
  const isStale = useStale() !== null;
  const [action, setAction] = useState<WorkloadAction | null>(null);
  const mayAct = mayActOnWork(me, queues, workload.queue);
  const locked = isStale
    ? WORKLOAD_ACTIONS.stale
    : mayAct || !loaded
      ? null
      : WORKLOAD_ACTIONS.forbidden(workload.queue);
  return (
    <Group gap="xs" role="group" aria-label={WORKLOAD_ACTIONS.label}>
      {actionsFor(workload).map((each) => (
        <Tooltip key={each} label={locked} disabled={locked === null} events={TOOLTIP_EVENTS}>
          <Button
            size="xs"
            variant="default"
            // Not `disabled`, so that keyboards and screen readers reach the reason.
            aria-disabled={locked !== null}
            {...(locked === null ? {} : { "data-disabled": true, "aria-description": locked })}
            onClick={() => {
              if (locked === null) setAction(each);
            }}
          >
            {ACTION_TEXTS[each].button}
          </Button>
        </Tooltip>
      ))}
      {action !== null && (
        <ActionDialog action={action} workload={workload} onClose={() => setAction(null)} />
      )}
    </Group>
  );
}

const TOOLTIP_EVENTS = { hover: true, focus: true, touch: true };

type DialogProps = { action: WorkloadAction; workload: Workload; onClose: () => void };

function ActionDialog({ action, workload, onClose }: DialogProps) {
  const [reason, setReason] = useState("");
  const [hours, setHours] = useState("0");
  const texts = ACTION_TEXTS[action];
  const title = workload.owner || workload.name;
  const write = useMutation({
    mutationFn: () => {
      const until = action === "hold" ? holdEnd(Number(hours), Date.now()) : undefined;
      return actOnWorkload(workload, action, {
        reason: reason.trim(),
        ...(until === undefined ? {} : { until }),
      });
    },
    onSuccess: () => {
      reportDone(texts.done, title);
      onClose();
    },
  });
  return (
    <Dialog title={texts.title(title)} size="md" onClose={onClose}>
      <form
        aria-label={texts.title(title)}
        onSubmit={(event) => {
          event.preventDefault();
          write.mutate();
        }}
      >
        <p>{texts.text}</p>
        {action === "hold" && (
          <Select
            label={WORKLOAD_ACTIONS.duration}
            data={[...WORKLOAD_ACTIONS.durations]}
            value={hours}
            allowDeselect={false}
            comboboxProps={{ withinPortal: false }}
            onChange={(value) => setHours(value ?? "0")}
            mb="sm"
          />
        )}
        {action !== "retry-bind" && (
          <TextInput
            label={WORKLOAD_ACTIONS.reason}
            description={WORKLOAD_ACTIONS.reasonHint}
            data-autofocus
            value={reason}
            maxLength={200}
            onChange={(event) => setReason(event.currentTarget.value)}
          />
        )}
        {write.error !== null && (
          <Failure title={WORKLOAD_ACTIONS.failed} detail={write.error.message} />
        )}
        <Group justify="flex-end" mt="md">
          <Button variant="default" onClick={onClose}>
            {WORKLOAD_ACTIONS.cancel}
          </Button>
          <Button
            type="submit"
            loading={write.isPending}
            {...(action === "requeue" ? { color: "red.9" } : {})}
          >
            {texts.button.replace("…", "")}
          </Button>
        </Group>
      </form>
    </Dialog>
  );
}

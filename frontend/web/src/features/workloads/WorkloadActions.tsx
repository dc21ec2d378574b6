import { Group, Select, TextInput } from "@mantine/core";
import { useState } from "react";
import { useMe } from "../../api/useMe.ts";
import { actOnWorkload } from "../../api/workloads.ts";
import { ACTION_TEXTS, WORKLOAD_ACTIONS } from "../../i18n/actions.ts";
import { useTopic } from "../../live/react.tsx";
import { mayActOnWork } from "../../model/rights.ts";
import type { Workload, WorkloadAction } from "../../model/rows.ts";
import { IN_DIALOG } from "../../ui/Dialog.tsx";
import { LockableButton } from "../../ui/LockableButton.tsx";
import { reportDone } from "../../ui/reportDone.tsx";
import { useStale } from "../../ui/useStale.ts";
import { WriteForm } from "../../ui/WriteForm.tsx";
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
        <LockableButton
          key={each}
          text={ACTION_TEXTS[each].button}
          locked={locked}
          onClick={() => setAction(each)}
        />
      ))}
      {action !== null && (
        <ActionDialog action={action} workload={workload} onClose={() => setAction(null)} />
      )}
    </Group>
  );
}

type DialogProps = { action: WorkloadAction; workload: Workload; onClose: () => void };

function ActionDialog({ action, workload, onClose }: DialogProps) {
  const [reason, setReason] = useState("");
  const [hours, setHours] = useState("0");
  const texts = ACTION_TEXTS[action];
  const title = workload.owner || workload.name;
  const act = () => {
    const until = action === "hold" ? holdEnd(Number(hours), Date.now()) : undefined;
    return actOnWorkload(workload, action, {
      reason: reason.trim(),
      ...(until === undefined ? {} : { until }),
    });
  };
  return (
    <WriteForm
      title={texts.title(title)}
      submitText={texts.button.replace("…", "")}
      isReady
      isDangerous={action === "requeue"}
      onSubmit={act}
      onDone={() => {
        reportDone(texts.done, title);
        onClose();
      }}
      onClose={onClose}
    >
      <p>{texts.text}</p>
      {action === "hold" && (
        <Select
          label={WORKLOAD_ACTIONS.duration}
          data={[...WORKLOAD_ACTIONS.durations]}
          value={hours}
          allowDeselect={false}
          comboboxProps={IN_DIALOG}
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
    </WriteForm>
  );
}

import { Button, Group, Select, Stack, Switch, TextInput } from "@mantine/core";
import { useState } from "react";
import {
  createNotification,
  type NotificationValues,
  patchNotification,
} from "../../api/notifications.ts";
import { NOTIFICATIONS } from "../../i18n/notifications.ts";
import type { Notification, NotificationEvent } from "../../model/rows.ts";
import { IN_DIALOG } from "../../ui/Dialog.tsx";
import { WriteForm } from "../../ui/WriteForm.tsx";
import { SubtreeSelect } from "./SubtreeSelect.tsx";

const EVENTS = Object.entries(NOTIFICATIONS.eventTexts).map(([value, label]) => ({
  value: value as NotificationEvent,
  label,
}));
const REPORTS = Object.entries(NOTIFICATIONS.reports).map(([value, label]) => ({ value, label }));
const SECRET_BYTES = 32;
const LONGEST_WAIT_MINUTES = 43_200;
const NEW = {
  name: "",
  url: "",
  events: [] as readonly NotificationEvent[],
  subtree: null as string | null,
  waitMinutes: 30,
  report: "monthly" as Notification["report"],
  enabled: true,
};

function newSecret(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(SECRET_BYTES));
  return `whsec_${btoa(String.fromCharCode(...bytes))}`;
}

type Props = {
  webhook?: Notification;
  onDone: (title: string, text: string) => void;
  onClose: () => void;
};

/** Create a webhook, or edit one; the secret of one that exists is not shown. */
export function WebhookDialog({ webhook, onDone, onClose }: Props) {
  const [edit, setEdit] = useState<Omit<NotificationValues, "secret" | "waitMinutes">>(
    webhook ?? NEW,
  );
  const [minutes, setMinutes] = useState(String((webhook ?? NEW).waitMinutes));
  const [secret, setSecret] = useState("");
  const [isSecretRemoved, setSecretRemoved] = useState(false);
  const isMinutes =
    /^\d+$/.test(minutes) && Number(minutes) >= 1 && Number(minutes) <= LONGEST_WAIT_MINUTES;
  const set = (values: Partial<typeof edit>) => setEdit({ ...edit, ...values });
  const values = (): NotificationValues => ({
    name: edit.name.trim(),
    url: edit.url.trim(),
    events: edit.events,
    subtree: edit.subtree,
    waitMinutes: Number(minutes),
    report: edit.report,
    enabled: edit.enabled,
    ...(isSecretRemoved ? { secret: null } : secret === "" ? {} : { secret }),
  });
  const hasText = edit.name.trim() !== "" && edit.url.trim() !== "";
  return (
    <WriteForm
      title={webhook === undefined ? NOTIFICATIONS.create : NOTIFICATIONS.editOf(webhook.name)}
      submitText={webhook === undefined ? NOTIFICATIONS.submit : NOTIFICATIONS.save}
      isReady={hasText && edit.events.length > 0 && isMinutes}
      onSubmit={() =>
        webhook === undefined ? createNotification(values()) : patchNotification(webhook, values())
      }
      onDone={({ name }) =>
        onDone(webhook === undefined ? NOTIFICATIONS.created : NOTIFICATIONS.edited, name)
      }
      onClose={onClose}
    >
      <TextInput
        label={NOTIFICATIONS.name}
        data-autofocus
        required
        maxLength={64}
        value={edit.name}
        onChange={(event) => set({ name: event.currentTarget.value })}
        mb="sm"
      />
      <TextInput
        label={NOTIFICATIONS.url}
        description={NOTIFICATIONS.urlHint}
        required
        type="url"
        autoComplete="off"
        value={edit.url}
        onChange={(event) => set({ url: event.currentTarget.value })}
        mb="sm"
      />
      <Switch.Group
        label={NOTIFICATIONS.events}
        value={[...edit.events]}
        onChange={(events) => set({ events: events as NotificationEvent[] })}
        mb="sm"
      >
        <Stack gap="xs" mt="xs">
          {EVENTS.map(({ value, label }) => (
            <Switch key={value} value={value} label={label} />
          ))}
        </Stack>
      </Switch.Group>
      {edit.events.includes("workloadWaits") && (
        <TextInput
          label={NOTIFICATIONS.waitMinutes}
          inputMode="numeric"
          value={minutes}
          error={isMinutes ? undefined : NOTIFICATIONS.waitWrong}
          onChange={(event) => setMinutes(event.currentTarget.value)}
          mb="sm"
        />
      )}
      {edit.events.includes("usageReport") && (
        <Select
          label={NOTIFICATIONS.report}
          data={REPORTS}
          value={edit.report}
          allowDeselect={false}
          comboboxProps={IN_DIALOG}
          onChange={(report) => set({ report: report as Notification["report"] })}
          mb="sm"
        />
      )}
      <SubtreeSelect
        label={NOTIFICATIONS.subtree}
        value={edit.subtree}
        onChange={(subtree) => set({ subtree })}
      />
      <Group align="end" mb="sm" wrap="nowrap">
        <TextInput
          flex={1}
          label={NOTIFICATIONS.secret}
          description={webhook?.hasSecret ? NOTIFICATIONS.secretKept : NOTIFICATIONS.secretNew}
          autoComplete="off"
          disabled={isSecretRemoved}
          value={secret}
          onChange={(event) => setSecret(event.currentTarget.value.trim())}
        />
        <Button variant="default" disabled={isSecretRemoved} onClick={() => setSecret(newSecret())}>
          {NOTIFICATIONS.generate}
        </Button>
      </Group>
      {webhook?.hasSecret && (
        <Switch
          label={NOTIFICATIONS.removeSecret}
          checked={isSecretRemoved}
          onChange={(event) => setSecretRemoved(event.currentTarget.checked)}
          mb="sm"
        />
      )}
      <Switch
        label={NOTIFICATIONS.enabled}
        checked={edit.enabled}
        onChange={(event) => set({ enabled: event.currentTarget.checked })}
      />
    </WriteForm>
  );
}

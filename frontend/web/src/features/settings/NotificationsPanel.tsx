import { Button, Group } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import {
  deleteNotification,
  NOTIFICATIONS_KEY,
  testNotification,
  useNotifications,
} from "../../api/notifications.ts";
import { NOTIFICATIONS } from "../../i18n/notifications.ts";
import { dateTime } from "../../i18n/numbers.ts";
import { SETTINGS } from "../../i18n/settings.ts";
import { REFUSED } from "../../i18n/ui.ts";
import type { Notification } from "../../model/rows.ts";
import { DataTable } from "../../ui/DataTable.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { DialogButtons } from "../../ui/DialogButtons.tsx";
import { Panel } from "../../ui/Panel.tsx";
import { QueryFailure } from "../../ui/QueryFailure.tsx";
import { reportDone, reportFailure } from "../../ui/reportDone.tsx";
import { Empty, Loading } from "../../ui/States.tsx";
import styles from "./Settings.module.css";
import { WebhookDialog } from "./WebhookDialog.tsx";

type Action = "edit" | "delete" | "test";
type Opened = { action: "new" } | { action: "edit" | "delete"; webhook: Notification };

/** The webhooks with how their last delivery ended, for administrators. */
export function NotificationsPanel() {
  const queries = useQueryClient();
  const [opened, setOpened] = useState<Opened | null>(null);
  const { data, error, refetch } = useNotifications();
  const close = () => setOpened(null);
  const reload = () => void queries.invalidateQueries({ queryKey: NOTIFICATIONS_KEY });
  const done = (title: string, text: string) => {
    reportDone(title, text);
    close();
    reload();
  };
  const refused = (problem: Error) => {
    reportFailure(REFUSED, problem.message);
    close();
    reload();
  };
  const deletion = useMutation({
    mutationFn: deleteNotification,
    onSuccess: (_, { name }) => done(NOTIFICATIONS.deleted, name),
    onError: refused,
  });
  const test = useMutation({
    mutationFn: testNotification,
    onSuccess: (_, { name }) => done(NOTIFICATIONS.testSent, NOTIFICATIONS.testSentText(name)),
    onError: refused,
  });
  const act = (action: Action, webhook: Notification) =>
    action === "test" ? test.mutate(webhook) : setOpened({ action, webhook });
  if (error !== null && data === undefined) {
    return <QueryFailure error={error} onRetry={() => void refetch()} />;
  }
  return (
    <Panel
      title={NOTIFICATIONS.title}
      note={NOTIFICATIONS.note}
      tools={
        <Button size="xs" onClick={() => setOpened({ action: "new" })}>
          {NOTIFICATIONS.create}
        </Button>
      }
      flush
    >
      {data === undefined ? (
        <Loading />
      ) : data.items.length === 0 ? (
        <Empty title={NOTIFICATIONS.emptyTitle}>{NOTIFICATIONS.empty}</Empty>
      ) : (
        <DataTable name={NOTIFICATIONS.title} columns={NOTIFICATIONS.columns}>
          {data.items.map((webhook) => (
            <Row key={webhook.id} webhook={webhook} onAct={(action) => act(action, webhook)} />
          ))}
        </DataTable>
      )}
      {opened?.action === "new" && <WebhookDialog onDone={done} onClose={close} />}
      {opened?.action === "edit" && (
        <WebhookDialog webhook={opened.webhook} onDone={done} onClose={close} />
      )}
      {opened?.action === "delete" && (
        <Dialog title={NOTIFICATIONS.deleteTitle(opened.webhook.name)} size="md" onClose={close}>
          <p>{NOTIFICATIONS.deleteText}</p>
          <DialogButtons
            cancelText={NOTIFICATIONS.keep}
            confirmText={NOTIFICATIONS.delete}
            onCancel={close}
            onConfirm={() => deletion.mutate(opened.webhook)}
          />
        </Dialog>
      )}
    </Panel>
  );
}

function Row({ webhook, onAct }: { webhook: Notification; onAct: (action: Action) => void }) {
  const { name, url, hasSecret, events, subtree, enabled } = webhook;
  const signature = hasSecret ? NOTIFICATIONS.signed : NOTIFICATIONS.unsigned;
  const buttons = [
    ["test", NOTIFICATIONS.test, NOTIFICATIONS.testOf(name)],
    ["edit", NOTIFICATIONS.edit, NOTIFICATIONS.editOf(name)],
    ["delete", NOTIFICATIONS.delete, NOTIFICATIONS.deleteOf(name)],
  ] as const;
  return (
    <tr>
      <th scope="row">
        {name}
        <div className={styles.sub}>{hostOf(url)}</div>
        <div className={styles.sub}>{enabled ? signature : NOTIFICATIONS.off}</div>
      </th>
      <td>{events.map((event) => NOTIFICATIONS.eventTexts[event]).join(", ")}</td>
      <td>{subtree ?? SETTINGS.whole}</td>
      <td>
        <LastDelivery webhook={webhook} />
      </td>
      <td>
        <Group gap="xs" wrap="nowrap">
          {buttons.map(([action, text, label]) => (
            <Button
              key={action}
              size="compact-sm"
              variant="default"
              aria-label={label}
              onClick={() => onAct(action)}
            >
              {text}
            </Button>
          ))}
        </Group>
      </td>
    </tr>
  );
}

/** The path of an address is often a secret, so the table leaves it out. */
function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : url;
}

function LastDelivery({
  webhook: { lastDelivery, pending, nextTryAt },
}: {
  webhook: Notification;
}) {
  if (lastDelivery === null) return NOTIFICATIONS.none;
  const { event, state, error, createdAt } = lastDelivery;
  const eventText = event === "test" ? NOTIFICATIONS.testEvent : NOTIFICATIONS.eventTexts[event];
  const queue = [
    ...(pending > 0 ? [NOTIFICATIONS.waiting(pending)] : []),
    ...(nextTryAt === null ? [] : [NOTIFICATIONS.nextTry(dateTime(nextTryAt))]),
  ];
  return (
    <>
      <b>{NOTIFICATIONS.states[state]}</b>
      {error !== "" && <div>{error}</div>}
      <div className={styles.sub}>
        {eventText} · {dateTime(createdAt)}
      </div>
      {queue.length > 0 && <div className={styles.sub}>{queue.join(", ")}</div>}
    </>
  );
}

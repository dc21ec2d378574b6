import { Button, Drawer, Group } from "@mantine/core";
import { Fragment, useEffect, useState } from "react";
import { Link } from "react-router";
import { dateTime, RESOURCE_NAME } from "../../../i18n/numbers.ts";
import { ACTIONS, FACTS, FORM, QUEUES } from "../../../i18n/queues.ts";
import { CLOSE } from "../../../i18n/ui.ts";
import { HISTORY } from "../../../i18n/usage.ts";
import { type Queue, RESOURCES } from "../../../model/rows.ts";
import { Dialog } from "../../../ui/Dialog.tsx";
import { DialogButtons } from "../../../ui/DialogButtons.tsx";
import { queuePath } from "../../../ui/paths.ts";
import { Empty } from "../../../ui/States.tsx";
import { useStale } from "../../../ui/useStale.ts";
import type { QueueAction } from "../dialogs/QueueDialogs.tsx";
import styles from "./QueueDrawer.module.css";
import { QueueForm } from "./QueueForm.tsx";

type Props = {
  /** The selected queue, or null; `queue` is its row, undefined if it does not exist. */
  name: string | null;
  queue: Queue | undefined;
  /** What the user may do with it, whether they may edit any queue, and everything. */
  rights: { edit: boolean; place: boolean; anywhere: boolean; admin: boolean };
  onAction: (action: QueueAction) => void;
  onClose: () => void;
};

/** One queue: its amounts, what can be done with it, and the form that edits its fields. */
export function QueueDrawer({ name, queue, rights, onAction, onClose }: Props) {
  // The content stays while the drawer closes, so that the focus returns to the row.
  const [last, setLast] = useState(queue);
  if (queue !== undefined && queue !== last) setLast(queue);
  // It is drawn closed at first: a drawer remembers where the focus was only when it opens.
  const [isDrawn, setDrawn] = useState(false);
  useEffect(() => setDrawn(true), []);
  const [isTouched, setTouched] = useState(false);
  const [isLeaving, setLeaving] = useState(false);
  const shown = queue ?? (name === null ? last : undefined);
  const leave = () => {
    setLeaving(false);
    onClose();
  };
  return (
    <Drawer.Root
      opened={isDrawn && name !== null}
      onClose={() => (isTouched && queue !== undefined ? setLeaving(true) : leave())}
      position="right"
      size={560}
    >
      <Drawer.Overlay backgroundOpacity={0.25} />
      <Drawer.Content>
        {/* A <header> of its own would be a second banner beside that of a dialog over the drawer. */}
        <div className={styles.head}>
          <Drawer.Title>
            <b>{shown?.displayName || shown?.name || name}</b>
          </Drawer.Title>
          <Drawer.CloseButton aria-label={CLOSE} />
        </div>
        <Drawer.Body>
          {shown === undefined ? (
            name !== null && <Empty title={QUEUES.noSuch(name)}>{QUEUES.noSuchText}</Empty>
          ) : (
            <>
              <Facts queue={shown} />
              <Actions queue={shown} rights={rights} onAction={onAction} />
              {shown.problems.map((problem) => (
                <p key={problem} className={styles.summary}>
                  {problem}
                </p>
              ))}
              <QueueForm
                key={shown.name}
                queue={shown}
                rights={{ here: rights.edit, anywhere: rights.anywhere, admin: rights.admin }}
                onTouched={setTouched}
              />
            </>
          )}
        </Drawer.Body>
      </Drawer.Content>
      {isLeaving && (
        <Dialog title={FORM.discard} onClose={() => setLeaving(false)} size="md">
          <p>{FORM.discardText}</p>
          <DialogButtons
            cancelText={FORM.discardNo}
            confirmText={FORM.discardYes}
            onCancel={() => setLeaving(false)}
            onConfirm={leave}
          />
        </Dialog>
      )}
    </Drawer.Root>
  );
}

function Actions({
  queue,
  rights,
  onAction,
}: Pick<Props, "rights" | "onAction"> & { queue: Queue }) {
  const isStale = useStale() !== null;
  const isOurs = queue.managedBy === "" && !isStale;
  const buttons: [QueueAction["kind"], string, boolean][] = [
    ["create", ACTIONS.addChild, rights.place && !isStale],
    ["duplicate", ACTIONS.duplicate, rights.edit && !isStale],
    ["move", ACTIONS.move, rights.edit && isOurs],
    ["children", ACTIONS.children, rights.place && !isStale && !queue.leaf],
    ["delete", ACTIONS.remove, rights.edit && isOurs],
  ];
  const offered = buttons.filter(([, , isAllowed]) => isAllowed);
  if (offered.length === 0) return null;
  return (
    <Group gap="xs" mb="md" role="group" aria-label={ACTIONS.label}>
      {offered.map(([kind, text]) => (
        <Button
          key={kind}
          size="compact-sm"
          variant="default"
          onClick={() => onAction({ kind, queue: queue.name })}
        >
          {text}
        </Button>
      ))}
    </Group>
  );
}

function Facts({ queue }: { queue: Queue }) {
  return (
    <dl className={styles.facts}>
      <dt>{FACTS.name}</dt>
      <dd>
        <Link to={queuePath(queue.name)}>{queue.name}</Link>
      </dd>
      <dt>{FACTS.parent}</dt>
      <dd>{queue.parent ?? FACTS.topLevel}</dd>
      {RESOURCES.map((resource) => (
        <FactLine key={resource} queue={queue} resource={resource} />
      ))}
      {Object.entries(queue.gpuModels).map(([model, { allocated, quota, limit }], index) => (
        <Fragment key={model}>
          <dt>{index === 0 ? FACTS.models : ""}</dt>
          <dd>{FACTS.model(model, allocated, quota, limit)}</dd>
        </Fragment>
      ))}
      <dt>{FACTS.workloads}</dt>
      <dd>
        <Link to={`/workloads?queue=${encodeURIComponent(queue.name)}`}>
          {FACTS.workloadCounts(queue.runningWorkloads, queue.pendingWorkloads)}
        </Link>
      </dd>
      <dt>{FACTS.history}</dt>
      <dd>
        <Link to={`${queuePath(queue.name)}/history`}>{HISTORY.link}</Link>
      </dd>
      <dt>{FACTS.created}</dt>
      <dd>{dateTime(queue.createdAt)}</dd>
    </dl>
  );
}

function FactLine({ queue, resource }: { queue: Queue; resource: (typeof RESOURCES)[number] }) {
  const share = queue.share?.[resource] ?? null;
  return (
    <>
      <dt>{RESOURCE_NAME[resource]}</dt>
      <dd>
        {FACTS.resource(resource, queue.allocated[resource], queue.requested[resource], share)}
      </dd>
    </>
  );
}

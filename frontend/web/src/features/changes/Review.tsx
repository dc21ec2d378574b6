import { Button, Select, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import { Link } from "react-router";
import { actOnChange } from "../../api/changes.ts";
import { PreviewPanel } from "../../editing/PreviewPanel.tsx";
import { useReportUndoable, useUndo } from "../../editing/useUndo.ts";
import { CHANGE } from "../../i18n/changes.ts";
import { PREVIEW } from "../../i18n/preview.ts";
import type { ChangeRights } from "../../model/changes.ts";
import { editsOf } from "../../model/draft.ts";
import type { Change, Policy, Simulation } from "../../model/rows.ts";
import { Panel } from "../../ui/Panel.tsx";
import { reportDone } from "../../ui/reportDone.tsx";
import { Failure } from "../../ui/States.tsx";
import { useStale } from "../../ui/useStale.ts";
import styles from "./Change.module.css";
import type { ChangeView } from "./useChange.ts";

type Props = {
  view: ChangeView;
  change: Change;
  rights: ChangeRights;
  onDelete: () => Promise<void>;
};

/** What the change would do to workloads, why it is made, and the buttons for its next step. */
export function Review({ view, change, rights, onDelete }: Props) {
  const [reason, setReason] = useState(change.reason);
  const undo = useUndo();
  const reportUndoable = useReportUndoable();
  const isStale = useStale() !== null;
  const { simulation } = view;
  const isBlocked = change.errors.length > 0 || change.stale.length > 0;
  const evicts = simulation?.answer?.verdict === "evicts" || change.drains.length > 0;
  const needsReason = evicts && reason.trim() === "";
  const isBusy = view.isBusy || view.isPreviewing;

  const apply = async () => {
    // A preview is shown before anything is applied that it could warn of.
    if (simulation === null || !view.isFresh()) {
      const latest = await view.preview();
      const verdict = latest.answer?.verdict;
      if (verdict !== "safe" && verdict !== "no-effect") return;
      await view.apply({ preview: latest.id, reason });
    } else {
      await view.apply(
        simulation.answer === null ? { reason } : { preview: simulation.id, reason },
      );
    }
    reportUndoable(CHANGE.applied, CHANGE.appliedText(change.title), () =>
      actOnChange(change.id, "revert"),
    );
  };
  const request = async () => {
    await view.act("request");
    reportDone(CHANGE.requested, CHANGE.requestedText);
  };
  return (
    <Panel title={CHANGE.review}>
      <Problems change={change} />
      {change.stale.length > 0 && (
        <div className={styles.warning}>
          <b>{CHANGE.stale(change.stale.join(", "))}</b>
          <p>{CHANGE.staleText}</p>
          {rights.edit && (
            <Button
              size="compact-sm"
              variant="default"
              disabled={isBusy}
              onClick={() => void run(view.write({ edits: editsOf(change) }))}
            >
              {CHANGE.acceptCurrent}
            </Button>
          )}
        </div>
      )}
      <Drains change={change} />
      <Result change={change} simulation={simulation} isRunning={view.isPreviewing} />
      {rights.edit && (
        <>
          <TextInput
            label={CHANGE.name}
            key={change.title}
            defaultValue={change.title}
            maxLength={200}
            onBlur={({ currentTarget: { value } }) => {
              if (value.trim() !== "" && value !== change.title) view.saveTexts({ title: value });
            }}
            mb="sm"
          />
          <Textarea
            label={CHANGE.reason}
            description={CHANGE.reasonHint}
            value={reason}
            rows={2}
            maxLength={1000}
            error={needsReason ? CHANGE.reasonNeeded : undefined}
            onChange={(event) => setReason(event.currentTarget.value)}
            onBlur={() => {
              if (reason !== change.reason) view.saveTexts({ reason });
            }}
            mb="sm"
          />
        </>
      )}
      {rights.edit && (
        <Select
          label={CHANGE.policy}
          data={[...CHANGE.policies]}
          value={change.policy}
          allowDeselect={false}
          onChange={(value) => void run(view.write({ policy: value as Policy }))}
          mb="sm"
        />
      )}
      {!rights.edit && change.reason !== "" && <p>{change.reason}</p>}
      {change.needsApproval ? (
        <p className={styles.note}>{CHANGE.policyAsks}</p>
      ) : (
        rights.edit && !rights.apply && <p className={styles.note}>{CHANGE.needsApproval}</p>
      )}
      {view.error !== null && <Failure title={CHANGE.failed} detail={view.error.message} />}
      <div className={styles.buttons}>
        {rights.edit && (
          <Button variant="subtle" disabled={isBusy} onClick={() => void run(onDelete())}>
            {CHANGE.deleteDraft}
          </Button>
        )}
        {rights.decide && (
          <>
            <Button
              variant="default"
              disabled={isBusy}
              onClick={() => void run(view.act("reject"))}
            >
              {CHANGE.reject}
            </Button>
            <Button disabled={isBusy || isStale} onClick={() => void run(view.act("approve"))}>
              {CHANGE.approve}
            </Button>
          </>
        )}
        {(rights.edit || rights.apply || rights.decide) && (
          <Button
            variant="default"
            loading={view.isPreviewing}
            disabled={isBusy || change.errors.length > 0}
            onClick={() => void run(view.preview())}
          >
            {CHANGE.runPreview}
          </Button>
        )}
        {rights.request && (
          <Button
            variant={rights.apply ? "default" : "filled"}
            disabled={isBusy || isBlocked}
            onClick={() => void run(request())}
          >
            {CHANGE.request}
          </Button>
        )}
        {rights.apply && (
          <Button
            color={evicts ? "red.9" : "ink"}
            loading={view.isBusy}
            disabled={isBusy || isBlocked || isStale || needsReason}
            onClick={() => void run(apply())}
          >
            {applyText(simulation, change.drains.length)}
          </Button>
        )}
        {rights.undo && (
          <Button
            variant="default"
            disabled={isBusy || isStale}
            onClick={() => void undo(() => actOnChange(change.id, "revert"))}
          >
            {CHANGE.undo}
          </Button>
        )}
      </div>
    </Panel>
  );
}

/** Wait for a request whose failure the page shows already. */
async function run(request: Promise<unknown>): Promise<void> {
  await request.catch(() => {});
}

function applyText(simulation: Simulation | null, drained: number): string {
  if (simulation !== null && simulation.answer === null) return CHANGE.applyWithout;
  const evictedPods = simulation?.answer?.totals.evictedPods ?? 0;
  if (simulation?.answer?.verdict === "evicts") return CHANGE.applyAndEvict(evictedPods);
  return drained > 0 ? CHANGE.applyAndRequeue(drained) : CHANGE.apply;
}

/** The workloads that are requeued because a limit falls below what their queue uses. */
function Drains({ change: { drains } }: { change: Change }) {
  if (drains.length === 0) return null;
  return (
    <div className={styles.warning}>
      <b>{CHANGE.drains(drains.length)}</b>
      <ul className={styles.messages}>
        {drains.map(({ workload, queue, gpu, error }) => (
          <li key={workload}>
            <Link to={`/workloads/${workload}`}>{workload}</Link> {CHANGE.drained(queue, gpu)}
            {error !== null && <div className={styles.bad}>{error}</div>}
          </li>
        ))}
      </ul>
    </div>
  );
}

function Problems({ change: { errors, warnings } }: { change: Change }) {
  const messages = [...new Set(warnings.map(({ message }) => message))];
  return (
    <>
      {errors.map(({ message }) => (
        <Failure key={message} title={CHANGE.cannotBeMade} detail={message} />
      ))}
      {messages.length > 0 && (
        <div className={styles.warning}>
          <b>{CHANGE.warnings}</b>
          <ul className={styles.messages}>
            {messages.map((message) => (
              <li key={message}>{message}</li>
            ))}
          </ul>
        </div>
      )}
    </>
  );
}

type ResultProps = { change: Change; simulation: Simulation | null; isRunning: boolean };

function Result({ change, simulation, isRunning }: ResultProps) {
  if (isRunning) return <p role="status">{CHANGE.previewing}</p>;
  if (simulation === null) return null;
  return simulation.answer === null ? (
    <Failure title={PREVIEW.unavailable} detail={simulation.error ?? PREVIEW.unknownError} />
  ) : (
    <PreviewPanel preview={simulation.answer} edits={editsOf(change)} />
  );
}

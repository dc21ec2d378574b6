import { IconCircleCheck, IconCircleDashed, IconCircleX, IconLoader } from "@tabler/icons-react";
import { Link } from "react-router";
import { DiffTable } from "../../editing/DiffTable.tsx";
import { CHANGE, EDIT_ACTIONS, STEP_STATES } from "../../i18n/changes.ts";
import type { Change, ChangeStep } from "../../model/rows.ts";
import { Panel } from "../../ui/Panel.tsx";
import styles from "./Change.module.css";

/** The writes of a change that is or was applied, in their order. */
export function StepList({ change: { steps } }: { change: Change }) {
  const done = steps.filter(({ state }) => state === "done").length;
  return (
    <Panel
      title={CHANGE.steps}
      note={<span role="status">{CHANGE.progress(done, steps.length)}</span>}
    >
      {steps.map((step) => (
        <section key={step.number} className={styles.edit} aria-label={step.queue}>
          <h3 className={styles.queue}>
            <StepIcon state={step.state} />
            {EDIT_ACTIONS[step.action]}{" "}
            <Link to={`/queues?queue=${encodeURIComponent(step.queue)}`}>{step.queue}</Link>
            <span className={styles.state}>{STEP_STATES[step.state]}</span>
          </h3>
          {step.error !== null && <p className={styles.bad}>{step.error}</p>}
          {step.diff.length > 0 && <DiffTable diff={step.diff} name={step.queue} />}
        </section>
      ))}
    </Panel>
  );
}

function StepIcon({ state }: { state: ChangeStep["state"] }) {
  switch (state) {
    case "done":
      return <IconCircleCheck size={18} color="var(--good)" aria-hidden />;
    case "failed":
      return <IconCircleX size={18} color="var(--bad)" aria-hidden />;
    case "started":
      return <IconLoader size={18} color="var(--accent)" aria-hidden />;
    default:
      return <IconCircleDashed size={18} color="var(--line-strong)" aria-hidden />;
  }
}

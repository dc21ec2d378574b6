import { IconCircleCheck, IconCircleDashed } from "@tabler/icons-react";
import { Link } from "react-router";
import { FIRST_STEPS } from "../../i18n/overview.ts";
import { firstSteps } from "../../model/firstSteps.ts";
import type { Cluster } from "../../model/rows.ts";
import { Panel } from "../../ui/Panel.tsx";
import styles from "./Overview.module.css";

/** What is left to do on a new installation; gone once everything is done. */
export function FirstSteps({ cluster }: { cluster: Cluster }) {
  const steps = firstSteps(cluster);
  const left = steps.filter(({ isDone }) => !isDone).length;
  if (left === 0) return null;
  return (
    <Panel title={FIRST_STEPS.title} note={FIRST_STEPS.left(left)}>
      <ol className={styles.steps}>
        {steps.map(({ step, isDone }) => {
          const { name, text, to } = FIRST_STEPS.steps[step];
          return (
            <li key={step}>
              {isDone ? (
                <IconCircleCheck size={18} color="var(--good)" aria-label={FIRST_STEPS.done} />
              ) : (
                <IconCircleDashed size={18} color="var(--dim)" aria-label={FIRST_STEPS.open} />
              )}
              <div>
                <Link to={to}>{name}</Link>
                {!isDone && <p>{text}</p>}
              </div>
            </li>
          );
        })}
      </ol>
    </Panel>
  );
}

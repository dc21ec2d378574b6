import { IconCircleCheck, IconCircleDashed, IconCircleX, IconClock } from "@tabler/icons-react";
import { Link } from "react-router";
import { reasonWords, STAGES } from "../../i18n/en.ts";
import { useQueueLabels } from "../../live/useQueueLabels.ts";
import type { Explanation, WorkloadDetail } from "../../model/rows.ts";
import { count, gpus } from "../../model/units.ts";
import { Panel } from "../../ui/Panel.tsx";
import styles from "./Workloads.module.css";

/** Why a workload is where it is: one dominant reason, the evidence for it, and the road it takes. */
export function Why({ workload }: { workload: WorkloadDetail }) {
  const { explain } = workload;
  return (
    <div className={styles.why}>
      <div className={styles.why} style={{ gridTemplateColumns: "1fr" }}>
        <Panel title="The reason">
          <p className={styles.sentence}>{sentence(workload)}</p>
          {explain.text !== "" && <p className={styles.message}>{explain.text}</p>}
          {explain.reason !== "" && (
            <p className={styles.code}>
              Reason code <code>{explain.reason}</code>
            </p>
          )}
        </Panel>
        {explain.evidence.length > 0 && <Evidence explain={explain} />}
        {explain.order !== null && <Turn order={explain.order} />}
        {explain.others.length > 0 && (
          <Panel title="Also in the way">
            <ul>
              {explain.others.map(({ reason, text }) => (
                <li key={reason + text}>
                  <b>{reasonWords(reason)}</b> {text}
                </li>
              ))}
            </ul>
          </Panel>
        )}
      </div>
      <Panel title="The road to running">
        <ol className={styles.stages}>
          {explain.stages.map(({ stage, state, text }) => (
            <li key={stage}>
              <StageIcon state={state} />
              <div>
                <b>{STAGES[stage] ?? stage}</b>{" "}
                <span className="visually-hidden">{STAGE_WORDS[state] ?? state}</span>
                {text !== "" && <p>{text}</p>}
              </div>
            </li>
          ))}
        </ol>
      </Panel>
    </div>
  );
}

function sentence({ state, explain }: WorkloadDetail): string {
  if (state === "running") return "It runs.";
  if (state === "finished") return "It has finished.";
  if (state === "failed") return "It has failed.";
  if (explain.reason === "") return "It waits; no reason has been recorded yet.";
  return `${reasonWords(explain.reason)}.`;
}

/** Its place in the order of turns, and the nearest of those who come before it. */
function Turn({ order }: { order: NonNullable<Explanation["order"]> }) {
  const label = useQueueLabels();
  const { position, of, aheadInQueue, ahead } = order;
  return (
    <Panel title="Whose turn" note={`${count(position)}. of ${count(of)}`}>
      <p>
        {position === 1
          ? "It is the next one."
          : `${count(position - 1)} ahead of it, ${count(aheadInQueue)} of them in its own queue.`}
      </p>
      {ahead.length > 0 && (
        <ol className={styles.ahead} aria-label="Nearest ahead">
          {ahead.map((other) => (
            <li key={`${other.namespace}/${other.name}`}>
              <span className={styles.sub}>{count(other.position)}.</span>{" "}
              <Link to={`/workloads/${other.namespace}/${other.name}`}>
                {other.owner || other.name}
              </Link>{" "}
              <span className={styles.sub}>
                {label(other.queue)}, {gpus(other.gpu)} GPUs
              </span>
            </li>
          ))}
        </ol>
      )}
    </Panel>
  );
}

const STAGE_WORDS: Readonly<Record<string, string>> = {
  ok: "done",
  blocked: "blocked here",
  waiting: "waits here",
  unknown: "unknown",
};

function StageIcon({ state }: { state: string }) {
  switch (state) {
    case "ok":
      return <IconCircleCheck size={20} color="var(--good)" aria-hidden />;
    case "blocked":
      return <IconCircleX size={20} color="var(--bad)" aria-hidden />;
    case "waiting":
      return <IconClock size={20} color="var(--line-strong)" aria-hidden />;
    default:
      return <IconCircleDashed size={20} color="var(--line-strong)" aria-hidden />;
  }
}

function Evidence({ explain }: { explain: Explanation }) {
  return (
    <Panel title="Evidence" flush>
      <table className={styles.table}>
        <thead>
          <tr>
            <th scope="col">What</th>
            <th scope="col">Asked</th>
            <th scope="col">Available</th>
            <th scope="col">Where</th>
          </tr>
        </thead>
        <tbody>
          {explain.evidence.map(({ name, asked, available, where }) => (
            <tr key={`${name} ${where}`}>
              <th scope="row">{name}</th>
              <td>{asked ?? "–"}</td>
              <td>{available ?? "–"}</td>
              <td>{where}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Panel>
  );
}

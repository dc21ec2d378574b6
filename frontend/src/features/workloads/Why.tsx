import { IconCircleCheck, IconCircleDashed, IconCircleX, IconClock } from "@tabler/icons-react";
import { reasonWords, STAGES } from "../../i18n/en.ts";
import type { Explanation, WorkloadDetail } from "../../model/rows.ts";
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

const STAGE_WORDS: Readonly<Record<string, string>> = {
  ok: "done",
  blocked: "blocked here",
  waiting: "not reached yet",
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

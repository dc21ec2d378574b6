import { IconCircleCheck, IconCircleDashed, IconCircleX, IconClock } from "@tabler/icons-react";
import { Link } from "react-router";
import { reasonText, remedyText, stageStateText, stageText } from "../../i18n/reasons.ts";
import { NONE } from "../../i18n/ui.ts";
import { stateSentence, WHY } from "../../i18n/workloads.ts";
import { useQueueLabels } from "../../live/useQueueLabels.ts";
import type { Explanation, WorkloadDetail } from "../../model/rows.ts";
import { ColumnHeads } from "../../ui/ColumnHeads.tsx";
import { Panel } from "../../ui/Panel.tsx";
import { workloadPath } from "../../ui/paths.ts";
import { ScrollRegion } from "../../ui/ScrollRegion.tsx";
import { FailedBinds } from "./FailedBinds.tsx";
import { Unblockers } from "./Unblockers.tsx";
import styles from "./Workloads.module.css";

/** Why a workload is in its state: one dominant reason, its evidence, and the scheduling steps. */
export function Why({ workload }: { workload: WorkloadDetail }) {
  const { explain } = workload;
  return (
    <div className={styles.why}>
      <div className={styles.why} style={{ gridTemplateColumns: "1fr" }}>
        <Panel title={WHY.reason}>
          <p className={styles.sentence}>{stateSentence(workload.state, explain.reason)}</p>
          {explain.text !== "" && <p className={styles.message}>{explain.text}</p>}
          {remedyText(explain.reason) !== "" && (
            <p className={styles.remedy}>
              <b>{WHY.remedy}</b> {remedyText(explain.reason)}
            </p>
          )}
          {explain.reason !== "" && (
            <p className={styles.code}>
              {WHY.code} <code>{explain.reason}</code>
            </p>
          )}
        </Panel>
        {isWaiting(workload) && <Unblockers workload={workload} />}
        <FailedBinds pods={workload.podList} />
        {explain.evidence.length > 0 && <Evidence explain={explain} />}
        {explain.order !== null && <Position order={explain.order} />}
        {explain.others.length > 0 && (
          <Panel title={WHY.others}>
            <ul>
              {explain.others.map(({ reason, text }) => (
                <li key={reason + text}>
                  <b>{reasonText(reason)}</b> {text}
                </li>
              ))}
            </ul>
          </Panel>
        )}
      </div>
      <Panel title={WHY.stages}>
        <ol className={styles.stages}>
          {explain.stages.map(({ stage, state, text }) => (
            <li key={stage}>
              <StageIcon state={state} />
              <div>
                <b>{stageText(stage)}</b>{" "}
                <span className="visually-hidden">{stageStateText(state)}</span>
                {text !== "" && <p>{text}</p>}
              </div>
            </li>
          ))}
        </ol>
      </Panel>
    </div>
  );
}

function isWaiting({ state, explain }: WorkloadDetail): boolean {
  return (state === "pending" || state === "partial") && explain.reason !== "";
}

/** The position among all pending workloads, and the nearest ones ahead. */
function Position({ order }: { order: NonNullable<Explanation["order"]> }) {
  const label = useQueueLabels();
  const { position, of, aheadInQueue, ahead } = order;
  return (
    <Panel title={WHY.position} note={WHY.positionOf(position, of)}>
      <p>{position === 1 ? WHY.next : WHY.ahead(position - 1, aheadInQueue)}</p>
      {ahead.length > 0 && (
        <ol className={styles.ahead} aria-label={WHY.nearest}>
          {ahead.map((other) => (
            <li key={`${other.namespace}/${other.name}`}>
              <span className={styles.sub}>{WHY.place(other.position)}</span>{" "}
              <Link to={workloadPath(other)}>{other.owner || other.name}</Link>{" "}
              <span className={styles.sub}>{WHY.queueAndGpus(label(other.queue), other.gpu)}</span>
            </li>
          ))}
        </ol>
      )}
    </Panel>
  );
}

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
    <Panel title={WHY.evidence} flush>
      <ScrollRegion className={styles.scroll} name={WHY.evidenceTable}>
        <table className={styles.table}>
          <ColumnHeads labels={WHY.evidenceColumns} />
          <tbody>
            {explain.evidence.map(({ name, asked: requested, available, where }) => (
              <tr key={`${name} ${where}`}>
                <th scope="row">{name}</th>
                <td>{requested ?? NONE}</td>
                <td>{available ?? NONE}</td>
                <td>{where}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </ScrollRegion>
    </Panel>
  );
}

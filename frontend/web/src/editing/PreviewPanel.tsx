import { PREVIEW } from "../i18n/preview.ts";
import { useQueueLabels } from "../live/useQueueLabels.ts";
import type { DraftEdit } from "../model/draft.ts";
import { workloadName } from "../model/names.ts";
import { byWorkload, type Moved } from "../model/preview.ts";
import type { Preview } from "../model/rows.ts";
import { stayingWork } from "../model/staying.ts";
import { WorkloadLink } from "../ui/WorkloadLink.tsx";
import styles from "./Preview.module.css";

/** Longer lists are cut; their heading counts all. */
const MAX_LINES = 20;

type Props = {
  preview: Preview;
  /** The edits that are previewed, to explain why a lowered quota evicts nobody. */
  edits?: readonly DraftEdit[];
};

/** What an edit would do: the verdict, who is evicted by which rule, who starts, and who waits for another reason. */
export function PreviewPanel({ preview, edits = [] }: Props) {
  const label = useQueueLabels();
  const { totals, verdict } = preview;
  const blocked = preview.blocked.filter(({ before, after }) => before !== after);
  return (
    <section className={styles.panel} aria-label={PREVIEW.title} aria-live="polite">
      <p className={verdict === "evicts" ? styles.bad : styles.good}>{PREVIEW.verdicts[verdict]}</p>
      {preview.errors.map(({ message }) => (
        <p key={message}>{message}</p>
      ))}
      {stayingWork(preview, edits).map(({ queue, quota, allocated, share, isWithinShare }) => (
        <p key={queue}>
          {(isWithinShare ? PREVIEW.stays : PREVIEW.staysForNow)(
            label(queue),
            quota,
            allocated,
            share,
          )}
        </p>
      ))}
      <Moves
        title={PREVIEW.evicted(totals.evictedPods, totals.evictedGpu)}
        moves={byWorkload(preview.evictions)}
      />
      <Moves
        title={PREVIEW.started(totals.startedPods, totals.startedGpu)}
        moves={byWorkload(preview.starts)}
      />
      {blocked.length > 0 && (
        <>
          <h3>{PREVIEW.blocked(blocked.length)}</h3>
          <ul>
            {blocked.slice(0, MAX_LINES).map(({ workload, before, after, text }) => (
              <li key={workload} title={text}>
                <WorkloadLink workload={workload} /> <span>{PREVIEW.reasons(before, after)}</span>
              </li>
            ))}
            <More rows={blocked.length} />
          </ul>
        </>
      )}
      <p className={styles.basis}>
        {PREVIEW.basis(preview.cyclesRun, preview.snapshot.workloads)}{" "}
        {preview.assumptions.join(" ")}
      </p>
    </section>
  );
}

function Moves({ title, moves }: { title: string; moves: readonly Moved[] }) {
  const label = useQueueLabels();
  if (moves.length === 0) return null;
  return (
    <>
      <h3>{title}</h3>
      <ul>
        {moves
          .slice(0, MAX_LINES)
          .map(({ workload, queue, pods, gpus, evictor, rule, isAnyway }) => (
            <li key={workload}>
              <WorkloadLink workload={workload} />{" "}
              <span>{PREVIEW.podsOf(label(queue), pods, gpus)}</span>{" "}
              {evictor !== null && <span>{PREVIEW.evictor(workloadName(evictor))}</span>}{" "}
              {isAnyway && <em>{PREVIEW.anyway}</em>}
              {rule !== "" && (
                <details>
                  <summary>{PREVIEW.rule}</summary>
                  {rule}
                </details>
              )}
            </li>
          ))}
        <More rows={moves.length} />
      </ul>
    </>
  );
}

function More({ rows }: { rows: number }) {
  return rows > MAX_LINES ? <li>{PREVIEW.more(rows - MAX_LINES)}</li> : null;
}

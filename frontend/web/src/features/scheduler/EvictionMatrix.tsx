import type { CSSProperties } from "react";
import { gpus } from "../../i18n/numbers.ts";
import { EVICTIONS } from "../../i18n/scheduler.ts";
import { useQueueLabels } from "../../live/useQueueLabels.ts";
import type { Matrix } from "../../model/evictions.ts";
import { ScrollRegion } from "../../ui/ScrollRegion.tsx";
import { Empty } from "../../ui/States.tsx";
import styles from "./Scheduler.module.css";

type Props = {
  matrix: Matrix;
  chosen: { readonly evictor: string; readonly victim: string } | null;
  onChoose: (evictor: string, victim: string) => void;
};

/** A table of GPUs taken: the queue of a row got the room, that of a column lost it. */
export function EvictionMatrix({ matrix, chosen, onChoose }: Props) {
  const label = useQueueLabels();
  const { evictors, victims, cell, largest, hidden } = matrix;
  if (evictors.length === 0) {
    return <Empty title={EVICTIONS.emptyTitle}>{EVICTIONS.empty}</Empty>;
  }
  const name = (queue: string) => (queue === "" ? EVICTIONS.nobody : label(queue));
  return (
    <ScrollRegion name={EVICTIONS.table} className={styles.scroll}>
      <table className={styles.matrix}>
        <thead>
          <tr>
            <th scope="col">{EVICTIONS.corner}</th>
            {victims.map((victim) => (
              <th key={victim} scope="col" title={victim}>
                {name(victim)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {evictors.map((evictor) => (
            <tr key={evictor}>
              <th scope="row" title={evictor}>
                {name(evictor)}
              </th>
              {victims.map((victim) => {
                const sum = cell(evictor, victim);
                if (sum === undefined) {
                  return (
                    <td key={victim} className={styles.empty}>
                      ·
                    </td>
                  );
                }
                const text = EVICTIONS.cell(name(evictor), name(victim), sum.gpu, sum.evictions);
                return (
                  <td key={victim}>
                    <button
                      type="button"
                      className={styles.cell}
                      style={{ "--part": largest > 0 ? sum.gpu / largest : 0 } as CSSProperties}
                      aria-label={text}
                      title={text}
                      aria-pressed={chosen?.evictor === evictor && chosen.victim === victim}
                      onClick={() => onChoose(evictor, victim)}
                    >
                      {gpus(sum.gpu)}
                    </button>
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
      {hidden.queues > 0 && <p>{EVICTIONS.hidden(hidden.queues, hidden.gpu)}</p>}
    </ScrollRegion>
  );
}

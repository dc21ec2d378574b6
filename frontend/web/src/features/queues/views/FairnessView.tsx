import { useMemo } from "react";
import { amount } from "../../../i18n/numbers.ts";
import { FAIRNESS } from "../../../i18n/queues.ts";
import { NONE } from "../../../i18n/ui.ts";
import { useQueueLabels } from "../../../live/useQueueLabels.ts";
import { borrowings, type FairGroup, type FairRow, fairGroups } from "../../../model/fairness.ts";
import type { Queue, Resource } from "../../../model/rows.ts";
import { DataTable } from "../../../ui/DataTable.tsx";
import { QueueLink } from "../../../ui/QueueLink.tsx";
import { Empty } from "../../../ui/States.tsx";
import styles from "./Views.module.css";

/** The right end of the plot; a queue with more is drawn there, its number says how much. */
const MOST = 2;

type Props = { queues: ReadonlyMap<string, Queue>; resource: Resource };

/** What queues hold, measured by their fair share: a dot for each, around the line of exactly the share. */
export function FairnessView({ queues, resource }: Props) {
  const label = useQueueLabels();
  const groups = useMemo(() => fairGroups(queues.values(), resource), [queues, resource]);
  if (groups.length === 0) {
    return <Empty title={FAIRNESS.emptyTitle}>{FAIRNESS.empty}</Empty>;
  }
  return (
    <div className={styles.scroll}>
      {groups.map((group) => {
        const title = group.parent === null ? FAIRNESS.top : FAIRNESS.below(label(group.parent));
        return (
          <section key={group.parent ?? ""} className={styles.group} aria-label={title}>
            <h2 className={styles.title}>{title}</h2>
            <DataTable name={title} columns={FAIRNESS.columns} numberColumns={[2, 3, 4, 5]}>
              {group.rows.map((row) => (
                <Row key={row.queue.name} row={row} resource={resource} />
              ))}
            </DataTable>
            <Pairs group={group} resource={resource} label={label} />
          </section>
        );
      })}
    </div>
  );
}

function Row({ row, resource }: { row: FairRow; resource: Resource }) {
  const { queue, allocated, share, ratio, missing } = row;
  const place = ratio === null ? MOST : Math.min(ratio, MOST);
  const tone = missing > 0 ? styles.starved : missing < 0 ? styles.borrowing : "";
  return (
    <tr>
      <th scope="row">
        <QueueLink queue={queue.name} />
      </th>
      <td>
        <div className={styles.plot} aria-hidden>
          <i className={styles.one} />
          <b className={`${styles.dot} ${tone}`} style={{ left: `${(100 * place) / MOST}%` }} />
        </div>
      </td>
      <td>{ratio === null ? FAIRNESS.noShare : FAIRNESS.ratio(ratio)}</td>
      <td>{amount(resource, allocated)}</td>
      <td>{amount(resource, share)}</td>
      <td>
        {missing === 0
          ? NONE
          : missing > 0
            ? FAIRNESS.lacks(amount(resource, missing))
            : FAIRNESS.beyond(amount(resource, -missing))}
      </td>
    </tr>
  );
}

type PairsProps = { group: FairGroup; resource: Resource; label: (queue: string) => string };

function Pairs({ group, resource, label }: PairsProps) {
  const pairs = borrowings(group);
  if (pairs.length === 0) return null;
  return (
    <ul className={styles.pairs}>
      {pairs.map(({ from, to, amount: value }) => (
        <li key={`${from} ${to}`}>
          {FAIRNESS.pair(label(from), amount(resource, value), label(to))}
        </li>
      ))}
    </ul>
  );
}

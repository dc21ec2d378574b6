import { memo, useMemo } from "react";
import { Link } from "react-router";
import { BarList } from "../../charts/BarList.tsx";
import {
  amount,
  bound,
  count,
  dateTime,
  gpuCount,
  RESOURCE_NAME,
  UNIT,
} from "../../i18n/numbers.ts";
import { QUEUE_PAGE } from "../../i18n/queue.ts";
import { reasonText } from "../../i18n/reasons.ts";
import { NONE } from "../../i18n/ui.ts";
import { workloadKey } from "../../model/names.ts";
import { inOrder } from "../../model/order.ts";
import { type Queue, RESOURCES, type Resource, type Workload } from "../../model/rows.ts";
import { BulletBar, BulletLegend, bulletOf, bulletReach } from "../../ui/BulletBar.tsx";
import { DataTable } from "../../ui/DataTable.tsx";
import { Fact, FactList } from "../../ui/FactList.tsx";
import { Panel } from "../../ui/Panel.tsx";
import { QueueLink } from "../../ui/QueueLink.tsx";
import { StateBadge } from "../../ui/StateBadge.tsx";
import { Empty } from "../../ui/States.tsx";
import { Term } from "../../ui/Term.tsx";
import { WorkloadLink } from "../../ui/WorkloadLink.tsx";
import styles from "./Queue.module.css";
import { useWorkloadsBelow } from "./useWorkloadsBelow.ts";

const LISTED = 6;
const WAITING = new Set(["pending", "gated", "partial"]);

/** What the queue holds against its bounds, why its work waits, and whose turn is next. */
export function SummaryTab({
  queue,
  queues,
}: {
  queue: Queue;
  queues: ReadonlyMap<string, Queue>;
}) {
  const { rows } = useWorkloadsBelow(queue.name);
  const workloads = useMemo(() => [...rows.values()], [rows]);
  return (
    <>
      <Facts queue={queue} />
      {queue.problems.map((problem) => (
        <p key={problem} className={styles.problem}>
          {problem}
        </p>
      ))}
      <Panel
        title={QUEUE_PAGE.amounts}
        note={QUEUE_PAGE.amountsNote}
        tools={<BulletLegend />}
        flush
      >
        <DataTable
          name={QUEUE_PAGE.amounts}
          columns={QUEUE_PAGE.resources}
          numberColumns={[2, 3, 4, 5, 6, 7]}
        >
          {RESOURCES.map((resource) => (
            <ResourceRow key={resource} queue={queue} resource={resource} />
          ))}
        </DataTable>
      </Panel>
      <div className={styles.columns}>
        <Reasons queue={queue.name} workloads={workloads} />
        <Next queue={queue.name} workloads={workloads} />
        <Largest workloads={workloads} />
      </div>
      {queue.children.length > 0 && (
        <Panel title={QUEUE_PAGE.children} note={count(queue.children.length)}>
          <ul className={styles.children}>
            {queue.children
              .filter((child) => queues.has(child))
              .map((child) => (
                <li key={child}>
                  <QueueLink queue={child} />
                </li>
              ))}
          </ul>
        </Panel>
      )}
    </>
  );
}

function Facts({ queue }: { queue: Queue }) {
  return (
    <FactList>
      <Fact name={QUEUE_PAGE.parent}>
        {queue.parent === null ? QUEUE_PAGE.topLevel : <QueueLink queue={queue.parent} />}
      </Fact>
      <Fact name={<Term entry="priority" />}>{queue.priority ?? NONE}</Fact>
      <Fact name={QUEUE_PAGE.minRuntimes}>
        {queue.preemptMinRuntime ?? NONE}, {queue.reclaimMinRuntime ?? NONE}
      </Fact>
      {(queue.maxRunTime ?? queue.requeueDelay) !== null && (
        <Fact name={QUEUE_PAGE.maxRunTime}>
          {queue.maxRunTime ?? NONE}, {queue.requeueDelay ?? NONE}
        </Fact>
      )}
      <Fact name={QUEUE_PAGE.created}>{dateTime(queue.createdAt)}</Fact>
      {queue.managedBy !== "" && <Fact name={QUEUE_PAGE.manager}>{queue.managedBy}</Fact>}
    </FactList>
  );
}

function ResourceRow({ queue, resource }: { queue: Queue; resource: Resource }) {
  const bullet = bulletOf(queue, resource);
  return (
    <tr>
      <th scope="row">
        {RESOURCE_NAME[resource]} <span className={styles.sub}>{UNIT[resource]}</span>
      </th>
      <td>
        <div className={styles.bar}>
          <BulletBar bullet={bullet} max={Math.max(bulletReach(bullet) * 1.03, 1e-9)} />
        </div>
      </td>
      <td>{amount(resource, bullet.allocated)}</td>
      <td>{amount(resource, bullet.requested)}</td>
      <td>{bound(resource, bullet.quota)}</td>
      <td>{bound(resource, bullet.limit)}</td>
      <td>{queue.weight[resource] ?? NONE}</td>
      <td>{bullet.share === null ? NONE : amount(resource, bullet.share)}</td>
    </tr>
  );
}

type WorkProps = { queue: string; workloads: readonly Workload[] };

/** As the other lists of workloads: not drawn again when only amounts of queues change, several times a second. */
const Reasons = memo(function Reasons({ queue, workloads }: WorkProps) {
  const counts = new Map<string, number>();
  for (const { state, reason } of workloads)
    if (WAITING.has(state) && reason !== "") counts.set(reason, (counts.get(reason) ?? 0) + 1);
  const bars = [...counts]
    .sort(([, a], [, b]) => b - a)
    .map(([reason, value]) => ({
      key: reason,
      label: reasonText(reason),
      value,
      shown: count(value),
      to: `/workloads?queue=${encodeURIComponent(queue)}&reason=${reason}`,
    }));
  return (
    <Panel title={QUEUE_PAGE.reasons}>
      {bars.length === 0 ? (
        <Empty title={QUEUE_PAGE.noneWaits} />
      ) : (
        <BarList
          summary={QUEUE_PAGE.reasons}
          columns={QUEUE_PAGE.reasonColumns}
          file={`${queue}-reasons.csv`}
          bars={bars}
        />
      )}
    </Panel>
  );
});

const Next = memo(function Next({ queue, workloads }: WorkProps) {
  const placed = inOrder(workloads).slice(0, LISTED);
  return (
    <Panel
      title={QUEUE_PAGE.ahead}
      tools={
        <Link to={`/scheduler/order?queue=${encodeURIComponent(queue)}`}>{QUEUE_PAGE.order}</Link>
      }
    >
      {placed.length === 0 ? (
        <Empty title={QUEUE_PAGE.noneWaits} />
      ) : (
        <ol className={styles.list}>
          {placed.map((row) => (
            <li key={workloadKey(row)}>
              <span className={styles.who}>
                <span className={styles.sub}>{QUEUE_PAGE.place(row.position)}</span>{" "}
                <WorkloadLink workload={workloadKey(row)} name={row.owner || row.name} />
              </span>
              <span className={styles.sub}>{gpuCount(row.gpu)}</span>
            </li>
          ))}
        </ol>
      )}
    </Panel>
  );
});

const Largest = memo(function Largest({ workloads }: Pick<WorkProps, "workloads">) {
  const largest = workloads
    .filter(({ state }) => state !== "finished" && state !== "failed")
    .sort((a, b) => b.gpu - a.gpu || (a.name < b.name ? -1 : 1))
    .slice(0, LISTED);
  return (
    <Panel title={QUEUE_PAGE.largest}>
      {largest.length === 0 ? (
        <Empty title={QUEUE_PAGE.noWorkloads}>{QUEUE_PAGE.noWorkloadsText}</Empty>
      ) : (
        <ol className={styles.list}>
          {largest.map((row) => (
            <li key={workloadKey(row)}>
              <span className={styles.who}>
                <WorkloadLink workload={workloadKey(row)} name={row.owner || row.name} />
              </span>
              <span className={styles.sub}>{gpuCount(row.gpu)}</span>
              <span className={styles.state}>
                <StateBadge state={row.state} />
              </span>
            </li>
          ))}
        </ol>
      )}
    </Panel>
  );
});

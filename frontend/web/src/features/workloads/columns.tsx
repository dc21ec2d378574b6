import { reasonWords } from "../../i18n/en.ts";
import type { Hue } from "../../model/hues.ts";
import type { Workload } from "../../model/rows.ts";
import { count, gpus } from "../../model/units.ts";
import type { Column } from "../../ui/columns.ts";
import { Elapsed } from "../../ui/Elapsed.tsx";
import { QueueMark } from "../../ui/QueueMark.tsx";
import { StateBadge } from "../../ui/StateBadge.tsx";
import styles from "./Workloads.module.css";

/** Waiting work first: it is what people come to this page for. */
const STATE_ORDER = ["pending", "gated", "partial", "running", "failed", "finished"];

export function workloadColumns(
  hues: ReadonlyMap<string, Hue>,
  label: (queue: string) => string,
): readonly Column<Workload>[] {
  return [
    {
      key: "name",
      label: "Workload",
      width: "minmax(170px, 1.2fr)",
      sortBy: (row) => row.owner || row.name,
      render: (row) => (
        <div className={styles.two}>
          <div className={styles.main}>{row.owner || row.name}</div>
          <div className={styles.sub}>
            {row.kind} in {row.namespace}
          </div>
        </div>
      ),
    },
    {
      key: "queue",
      label: "Queue",
      width: "minmax(104px, 0.7fr)",
      sortBy: (row) => label(row.queue),
      render: (row) => (
        <span className={styles.queue} title={row.queue}>
          <QueueMark hue={hues.get(row.queue)} />
          <span className={styles.queueName}>{label(row.queue)}</span>
        </span>
      ),
    },
    {
      key: "state",
      label: "State",
      width: "104px",
      sortBy: (row) => STATE_ORDER.indexOf(row.state),
      render: (row) => <StateBadge state={row.state} />,
    },
    {
      key: "ready",
      label: "Ready / min",
      width: "78px",
      numeric: true,
      render: (row) => `${row.ready} / ${row.minMember}`,
    },
    {
      key: "gpu",
      label: "GPUs",
      width: "58px",
      numeric: true,
      sortBy: (row) => row.gpu,
      render: (row) => (row.gpuKind === "none" ? "–" : gpus(row.gpu)),
    },
    {
      key: "priority",
      label: "Priority",
      width: "92px",
      sortBy: (row) => row.priority ?? 0,
      render: (row) => row.priorityClass || String(row.priority ?? "–"),
    },
    {
      key: "position",
      label: "Order",
      width: "64px",
      numeric: true,
      sortBy: (row) => row.position ?? Number.MAX_SAFE_INTEGER,
      render: (row) => (row.position === null ? "–" : `${count(row.position)}.`),
    },
    {
      key: "reason",
      label: "Why it waits",
      width: "minmax(210px, 2.4fr)",
      sortBy: (row) => row.reason,
      render: (row) => <Reason workload={row} />,
    },
    {
      key: "age",
      label: "Age",
      width: "82px",
      numeric: true,
      sortBy: (row) => -Date.parse(row.createdAt),
      render: (row) => <Elapsed since={row.createdAt} />,
    },
  ];
}

function Reason({ workload }: { workload: Workload }) {
  if (workload.reason === "")
    return <span className={styles.sub}>{workload.nodes.join(", ")}</span>;
  return (
    <div className={styles.two} title={workload.reasonText}>
      <div className={styles.main}>{reasonWords(workload.reason)}</div>
      <div className={styles.sub}>
        {workload.reason}
        {workload.reasonText === "" ? "" : `: ${workload.reasonText}`}
      </div>
    </div>
  );
}

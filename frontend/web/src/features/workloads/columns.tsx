import { gpus } from "../../i18n/numbers.ts";
import { reasonText } from "../../i18n/reasons.ts";
import { NONE } from "../../i18n/ui.ts";
import { codeAndText, kindIn, WHY, WORKLOAD_COLUMNS } from "../../i18n/workloads.ts";
import type { Hue } from "../../model/hues.ts";
import type { Workload } from "../../model/rows.ts";
import type { Column } from "../../ui/columns.ts";
import { Elapsed } from "../../ui/Elapsed.tsx";
import { QueueMark } from "../../ui/QueueMark.tsx";
import { StateBadge } from "../../ui/StateBadge.tsx";
import styles from "./Workloads.module.css";

/** Waiting workloads first, because people open this page to see them. */
const STATE_ORDER = ["pending", "gated", "partial", "running", "failed", "finished"];

export function workloadColumns(
  hues: ReadonlyMap<string, Hue>,
  label: (queue: string) => string,
): readonly Column<Workload>[] {
  return [
    {
      key: "name",
      label: WORKLOAD_COLUMNS.name,
      width: "minmax(154px, 1.2fr)",
      sortBy: (row) => row.owner || row.name,
      render: (row) => (
        <div className={styles.two}>
          <div className={styles.main}>{row.owner || row.name}</div>
          <div className={styles.sub}>{kindIn(row.kind, row.namespace, row.user)}</div>
        </div>
      ),
    },
    {
      key: "queue",
      label: WORKLOAD_COLUMNS.queue,
      width: "minmax(126px, 0.7fr)",
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
      label: WORKLOAD_COLUMNS.state,
      width: "104px",
      sortBy: (row) => STATE_ORDER.indexOf(row.state),
      render: (row) => <StateBadge state={row.state} />,
    },
    {
      key: "ready",
      label: WORKLOAD_COLUMNS.ready,
      width: "74px",
      numeric: true,
      render: (row) => `${row.ready} / ${row.minMember}`,
    },
    {
      key: "gpu",
      label: WORKLOAD_COLUMNS.gpu,
      width: "48px",
      numeric: true,
      sortBy: (row) => row.gpu,
      render: (row) => (row.gpuKind === "none" ? NONE : gpus(row.gpu)),
    },
    {
      key: "priority",
      label: WORKLOAD_COLUMNS.priority,
      width: "minmax(76px, 0.4fr)",
      sortBy: (row) => row.priority ?? 0,
      render: (row) => row.priorityClass || String(row.priority ?? NONE),
    },
    {
      key: "position",
      label: WORKLOAD_COLUMNS.position,
      width: "58px",
      numeric: true,
      sortBy: (row) => row.position ?? Number.MAX_SAFE_INTEGER,
      render: (row) => (row.position === null ? NONE : WHY.place(row.position)),
    },
    {
      key: "reason",
      label: WORKLOAD_COLUMNS.reason,
      width: "minmax(190px, 2.6fr)",
      sortBy: (row) => row.reason,
      render: (row) => <Reason workload={row} />,
    },
    {
      key: "age",
      label: WORKLOAD_COLUMNS.age,
      width: "72px",
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
      <div className={styles.main}>{reasonText(workload.reason)}</div>
      <div className={styles.sub}>{codeAndText(workload.reason, workload.reasonText)}</div>
    </div>
  );
}

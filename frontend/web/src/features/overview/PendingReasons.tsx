import { BarList } from "../../charts/BarList.tsx";
import { count } from "../../i18n/numbers.ts";
import { PENDING_REASONS } from "../../i18n/overview.ts";
import { reasonText } from "../../i18n/reasons.ts";
import type { Cluster } from "../../model/rows.ts";
import { Panel } from "../../ui/Panel.tsx";
import { Empty } from "../../ui/States.tsx";

export function PendingReasons({ cluster }: { cluster: Cluster }) {
  const reasons = cluster.pendingByReason;
  const bars = reasons.map(({ reason, workloads, gpu }) => ({
    key: reason || "NotEvaluated",
    label: reasonText(reason || "NotEvaluated"),
    value: workloads,
    shown: (
      <>
        {count(workloads)} <small>{PENDING_REASONS.gpus(gpu)}</small>
      </>
    ),
    to: `/workloads?state=pending&reason=${encodeURIComponent(reason)}`,
    color: "var(--bar-over)",
  }));
  return (
    <Panel title={PENDING_REASONS.title} note={PENDING_REASONS.note}>
      {bars.length === 0 ? (
        <Empty title={PENDING_REASONS.emptyTitle}>{PENDING_REASONS.empty}</Empty>
      ) : (
        <BarList
          summary={PENDING_REASONS.summary(cluster.workloads.pending)}
          columns={PENDING_REASONS.columns}
          file="pending-by-reason.csv"
          bars={bars}
        />
      )}
    </Panel>
  );
}

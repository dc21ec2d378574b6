import { BarList } from "../../charts/BarList.tsx";
import { reasonWords } from "../../i18n/en.ts";
import type { Cluster } from "../../model/rows.ts";
import { count, gpus } from "../../model/units.ts";
import { Panel } from "../../ui/Panel.tsx";
import { Empty } from "../../ui/States.tsx";

export function PendingReasons({ cluster }: { cluster: Cluster }) {
  const reasons = cluster.pendingByReason;
  const bars = reasons.map(({ reason, workloads, gpu }) => ({
    key: reason || "NotEvaluated",
    label: reasonWords(reason || "NotEvaluated"),
    value: workloads,
    shown: (
      <>
        {count(workloads)} <small>· {gpus(gpu)} GPUs</small>
      </>
    ),
    to: `/workloads?state=pending&reason=${encodeURIComponent(reason)}`,
    color: "var(--bar-over)",
  }));
  return (
    <Panel title="Why work is waiting" note="pending workloads by reason">
      {bars.length === 0 ? (
        <Empty title="Nothing is waiting">Every workload has what it asked for.</Empty>
      ) : (
        <BarList
          summary={`${count(cluster.workloads.pending)} workloads are pending`}
          columns={["Reason", "Workloads"]}
          file="pending-by-reason.csv"
          bars={bars}
        />
      )}
    </Panel>
  );
}

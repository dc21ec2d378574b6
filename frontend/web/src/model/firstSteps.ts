/** What a new installation needs before its pages have something to show. */
import type { Cluster } from "./rows.ts";

export type Step = "nodes" | "gpus" | "queue" | "workload" | "session";

/** The queues that an installation starts with. */
const DEFAULT_QUEUES = 2;

/** Return the steps in their order, each with whether it is done. */
export function firstSteps(
  cluster: Pick<Cluster, "nodes" | "gpus" | "queues" | "workloads" | "sessions">,
): { readonly step: Step; readonly isDone: boolean }[] {
  const { pending, running, finished, failed } = cluster.workloads;
  return [
    { step: "nodes", isDone: cluster.nodes.ready > 0 },
    { step: "gpus", isDone: cluster.gpus.total > 0 },
    { step: "queue", isDone: cluster.queues.total > DEFAULT_QUEUES },
    { step: "workload", isDone: pending + running + finished + failed > 0 },
    { step: "session", isDone: cluster.sessions.lastId !== null },
  ];
}

/** The row of the cluster topic, counted from all other rows. */
import type { Cluster, Node, Queue, Workload } from "../src/model/rows.ts";
import { LEAVES, MODELS } from "./world-seed.ts";

export type Picture = {
  readonly queues: ReadonlyMap<string, Queue>;
  readonly nodes: ReadonlyMap<string, Node>;
  readonly workloads: ReadonlyMap<string, Workload>;
  readonly session: number;
};

export function summary(world: Picture): Cluster {
  const nodes = [...world.nodes.values()];
  const sum = (list: Node[], of: (node: Node) => number) =>
    list.reduce((total, node) => total + of(node), 0);
  const isUsable = (node: Node) => node.ready && !node.cordoned;
  const total = sum(nodes, (node) => node.gpuTotal);
  const allocated = sum(nodes, (node) => node.gpuAllocated);
  const unusable = sum(
    nodes.filter((node) => !isUsable(node)),
    (node) => node.gpuTotal - node.gpuAllocated,
  );
  const pending = [...world.workloads.values()].filter((workload) => workload.state === "pending");
  const reasons = [...new Set(pending.map((workload) => workload.reason))];
  const leaves = LEAVES.map((name) => world.queues.get(name) as Queue);
  return {
    gpus: { total, allocated, free: total - allocated - unusable, unusable },
    models: MODELS.map(([model]) => {
      const mine = nodes.filter((node) => node.model === model);
      const size = sum(mine, (node) => node.gpuTotal);
      const used = sum(mine, (node) => node.gpuAllocated);
      return { model, total: size, allocated: used, free: size - used, unusable: 0 };
    }),
    freeByNode: MODELS.map(([model]) => ({ model, free: 0, nodes: 1 })),
    mirrorAt: new Date().toISOString(),
    asOf: { time: new Date().toISOString(), session: world.session, rv: "1" },
    queues: { total: world.queues.size, orphans: 0 },
    nodes: { total: nodes.length, ready: nodes.filter((node) => node.ready).length, cordoned: 1 },
    workloads: {
      pending: pending.length,
      running: [...world.workloads.values()].filter(({ state }) => state === "running").length,
      finished: 0,
      failed: 0,
    },
    pendingByReason: reasons
      .map((reason) => {
        const mine = pending.filter((workload) => workload.reason === reason);
        return {
          reason,
          workloads: mine.length,
          gpu: mine.reduce((all, workload) => all + workload.gpu, 0),
        };
      })
      .sort((a, b) => b.workloads - a.workloads),
    starved: ranked(
      leaves,
      (queue) => Math.min(queue.requested.gpu, queue.share?.gpu ?? 0) - queue.allocated.gpu,
    ),
    borrowing: ranked(
      leaves,
      (queue) =>
        queue.allocated.gpu - (queue.quota.gpu === "unlimited" ? 1e9 : (queue.quota.gpu ?? 0)),
    ),
    sessions: {
      perMinute: 32,
      lastId: world.session,
      lastDurationMs: 7.4,
      p95Ms: 14.2,
      lastStartedAt: new Date().toISOString(),
    },
  };
}

function ranked(queues: Queue[], of: (queue: Queue) => number): { queue: string; gpu: number }[] {
  const all = queues.map((queue) => ({ queue: queue.name, gpu: of(queue) }));
  return all
    .filter(({ gpu }) => gpu > 0)
    .sort((a, b) => b.gpu - a.gpu)
    .slice(0, 8);
}

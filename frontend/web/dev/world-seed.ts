/** The queues and nodes that the simulated cluster starts with. */
import type { Device, Node, Queue } from "../src/model/rows.ts";

export const GIB = 2 ** 30;
const TEAMS: [
  name: string,
  parent: string | null,
  quota: number | "unlimited",
  weight: number,
  priority: number,
][] = [
  ["research", null, 96, 2, 100],
  ["vision", "research", 32, 1, 100],
  ["language", "research", 48, 2, 100],
  ["robotics", "research", 16, 1, 80],
  ["platform", null, 64, 1, 120],
  ["inference", "platform", 40, 3, 150],
  ["batch-eval", "platform", 8, 1, 50],
  ["data-science", null, 32, 1, 100],
  ["notebooks", "data-science", 8, 1, 110],
  ["forecasting", "data-science", 24, 1, 100],
  ["default-parent-queue", null, "unlimited", 1, 100],
  ["default-queue", "default-parent-queue", 0, 1, 100],
];
export const LEAVES = [
  "vision",
  "language",
  "robotics",
  "inference",
  "batch-eval",
  "notebooks",
  "forecasting",
  "default-queue",
];
export const MODELS: [model: string, gib: number, nodes: number, gpus: number][] = [
  ["NVIDIA-H100-80GB-HBM3", 80, 12, 8],
  ["NVIDIA-A100-SXM4-40GB", 40, 10, 8],
  ["NVIDIA-L40S", 48, 8, 4],
];

export function seedQueues(etag: () => string): Map<string, Queue> {
  const queues = new Map<string, Queue>();
  TEAMS.forEach(([name, parent, quota, weight, priority], index) => {
    const none = { gpu: 0, cpuMilli: 0, memoryBytes: 0 };
    const limit: Queue["limit"] = {
      gpu: name === "robotics" ? 24 : "unlimited",
      cpuMilli: "unlimited",
      memoryBytes: "unlimited",
    };
    const capacity: Queue["quota"] = {
      gpu: quota,
      cpuMilli: quota === "unlimited" ? quota : quota * 12_000,
      memoryBytes: "unlimited",
    };
    queues.set(name, {
      name,
      displayName: name,
      parent,
      priority,
      quota: capacity,
      limit,
      weight: { gpu: weight, cpuMilli: 1, memoryBytes: 1 },
      allocated: none,
      allocatedNonPreemptible: none,
      requested: none,
      share: none,
      pendingWorkloads: 0,
      runningWorkloads: 0,
      orphan: false,
      userFairness: false,
      gpuModels: {},
      managedBy: "",
      depth: parent === null ? 0 : 1,
      children: [],
      leaf: LEAVES.includes(name),
      preemptMinRuntime: null,
      reclaimMinRuntime: null,
      maxRunTime: null,
      requeueDelay: null,
      generation: 1,
      labels: {},
      totalWorkloads: 0,
      problems: [],
      createdAt: new Date(1_700_000_000_000 + index * 1_000).toISOString(),
      etag: etag(),
    });
  });
  return queues;
}

export function seedNodes(scale: number): Map<string, Node> {
  const nodes = new Map<string, Node>();
  let rack = 0;
  for (const [model, gib, count, gpus] of MODELS) {
    for (let i = 0; i < count * scale; i++) {
      const name = `${model.split("-")[1]?.toLowerCase()}-${String(i + 1).padStart(2, "0")}`;
      if (i % 4 === 0) rack += 1;
      const devices: Device[] = Array.from({ length: gpus }, (_, index) => ({
        index,
        state: "free",
        used: 0,
        group: "",
        holders: [],
        utilisation: null,
        idleSince: null,
      }));
      nodes.set(name, {
        name,
        model,
        pool: "default",
        zone: `zone-${"ab"[rack % 2]}`,
        rack: `rack-${rack}`,
        ready: name !== "l40s-07",
        cordoned: name === "a100-04",
        gpuTotal: gpus,
        gpuAllocated: 0,
        gpuMemoryBytes: gib * GIB,
        gpuUtilisation: null,
        gpuIdle: null,
        cpu: { allocatable: gpus * 14_000, allocated: 900 },
        memory: { allocatable: gpus * 128 * GIB, allocated: 3 * GIB },
        pods: 0,
        taints: [],
        devices,
      });
    }
  }
  return nodes;
}

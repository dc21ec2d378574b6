/** Rows for tests: a test names the fields that matter, the others have plain values. */
import type { Device, Node, Preview, Queue, Simulation, Workload } from "../model/rows.ts";

const NONE = { gpu: 0, cpuMilli: 0, memoryBytes: 0 };

export function queueRow(change: Partial<Queue> & { name: string }): Queue {
  return {
    displayName: change.name,
    parent: null,
    depth: 0,
    children: [],
    leaf: true,
    priority: 100,
    preemptMinRuntime: null,
    reclaimMinRuntime: null,
    maxRunTime: null,
    requeueDelay: null,
    quota: { gpu: 8 },
    limit: { gpu: "unlimited" },
    weight: { gpu: 1 },
    allocated: NONE,
    allocatedNonPreemptible: NONE,
    requested: NONE,
    share: null,
    pendingWorkloads: 0,
    runningWorkloads: 0,
    totalWorkloads: 0,
    orphan: false,
    userFairness: false,
    gpuModels: {},
    managedBy: "",
    labels: {},
    problems: [],
    generation: 1,
    createdAt: "2026-01-01T00:00:00Z",
    etag: '"1"',
    ...change,
  };
}

export function workloadRow(change: Partial<Workload> & { name: string }): Workload {
  return {
    namespace: "team",
    kind: "Job",
    owner: change.name,
    user: "",
    queue: "a",
    priorityClass: "train",
    priority: 50,
    preemptible: true,
    protectsMinimum: false,
    state: "pending",
    minMember: 1,
    ready: 0,
    pods: 1,
    gated: 0,
    gpu: 1,
    gpuKind: "whole",
    gpuUtilisation: null,
    gpuIdle: null,
    idleSince: null,
    nodes: [],
    reason: "",
    reasonText: "",
    reasonSince: null,
    position: null,
    createdAt: "2026-01-01T00:00:00Z",
    startedAt: null,
    runDeadline: null,
    evictions: 0,
    rv: "1",
    ...change,
  };
}

export function freeDevice(index: number): Device {
  return {
    index,
    state: "free",
    used: 0,
    group: "",
    holders: [],
    utilisation: null,
    idleSince: null,
  };
}

export function nodeRow(name: string, gpus: number, change: Partial<Node> = {}): Node {
  return {
    name,
    model: gpus > 0 ? "NVIDIA-A100" : "",
    pool: "default",
    zone: "z1",
    rack: "r1",
    ready: true,
    cordoned: false,
    gpuTotal: gpus,
    gpuAllocated: 0,
    gpuMemoryBytes: 0,
    gpuUtilisation: null,
    gpuIdle: null,
    cpu: { allocatable: 1, allocated: 0 },
    memory: { allocatable: 1, allocated: 0 },
    pods: 0,
    taints: [],
    devices: Array.from({ length: gpus }, (_, index) => freeDevice(index)),
    ...change,
  };
}

export function previewAnswer(change: Partial<Preview>): Preview {
  return {
    snapshot: {
      takenAt: "2026-01-01T00:00:00Z",
      version: "1",
      nodes: 1,
      queues: 1,
      workloads: 1,
      pods: 1,
    },
    assumptions: [],
    cyclesRun: 3,
    verdict: "safe",
    shares: [],
    evictions: [],
    starts: [],
    blocked: [],
    errors: [],
    warnings: [],
    totals: {
      evictedPods: 0,
      evictedWorkloads: 0,
      evictedGpu: 0,
      evictedOnlyByEdits: 0,
      startedPods: 0,
      startedWorkloads: 0,
      startedGpu: 0,
      blockedWorkloads: 0,
    },
    durationMs: 1,
    ...change,
  };
}

export function simulated(answer: Preview): Simulation {
  return {
    id: 1,
    author: "admin",
    createdAt: "2026-01-01T00:00:00Z",
    finishedAt: "2026-01-01T00:00:01Z",
    state: "done",
    verdict: answer.verdict,
    error: null,
    question: {},
    answer,
  };
}

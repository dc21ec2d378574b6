/**
 * The rows of the live topics. They are the REST representations (the generated schema names
 * them), with the key `k` added; `asRow` is the one cast between the untyped store and these.
 */
import type { Row } from "../live/protocol.ts";

export type Amount = number;
export type Bound = number | "unlimited";
export type Resource = "gpu" | "cpuMilli" | "memoryBytes";
export const RESOURCES: readonly Resource[] = ["gpu", "cpuMilli", "memoryBytes"];

export type Amounts = Readonly<Record<Resource, Amount>>;
export type Bounds = Readonly<Partial<Record<Resource, Bound>>>;
export type Weights = Readonly<Partial<Record<Resource, number>>>;

export type Queue = {
  readonly name: string;
  readonly displayName: string;
  readonly parent: string | null;
  readonly priority: number | null;
  readonly quota: Bounds;
  readonly limit: Bounds;
  readonly weight: Weights;
  readonly allocated: Amounts;
  readonly allocatedNonPreemptible: Amounts;
  readonly requested: Amounts;
  readonly share: Amounts | null;
  readonly pendingWorkloads: number;
  readonly runningWorkloads: number;
  readonly orphan: boolean;
  readonly managedBy: string;
  readonly createdAt: string;
  readonly etag: string;
  readonly problems: readonly string[];
};

export type WorkloadState = "pending" | "running" | "partial" | "finished" | "failed" | "gated";

export type Workload = {
  readonly namespace: string;
  readonly name: string;
  readonly kind: string;
  readonly owner: string;
  readonly queue: string;
  readonly priorityClass: string;
  readonly priority: number | null;
  readonly preemptible: boolean;
  readonly state: WorkloadState;
  readonly minMember: number;
  readonly ready: number;
  readonly pods: number;
  readonly gpu: number;
  readonly gpuKind: "whole" | "fraction" | "memory" | "none";
  readonly nodes: readonly string[];
  readonly reason: string;
  readonly reasonText: string;
  readonly createdAt: string;
  readonly startedAt: string | null;
  readonly evictions: number;
};

export type Holder = {
  readonly pod: string;
  readonly workload: string;
  readonly queue: string;
  readonly gpu: number;
};

export type DeviceState = "free" | "whole" | "shared" | "reserved" | "unhealthy";

export type Device = {
  readonly index: number;
  readonly state: DeviceState;
  readonly used: number;
  readonly group: string;
  readonly holders: readonly Holder[];
};

export type Filling = { readonly allocatable: number; readonly allocated: number };

export type Node = {
  readonly name: string;
  readonly model: string;
  readonly pool: string;
  readonly zone: string;
  readonly rack: string;
  readonly ready: boolean;
  readonly cordoned: boolean;
  readonly gpuTotal: number;
  readonly gpuAllocated: number;
  readonly gpuMemoryBytes: number;
  readonly cpu: Filling;
  readonly memory: Filling;
  readonly pods: number;
  readonly devices: readonly Device[];
};

export type QueueGpu = { readonly queue: string; readonly gpu: number };

export type Cluster = {
  readonly gpus: {
    readonly total: number;
    readonly allocated: number;
    readonly free: number;
    readonly unusable: number;
  };
  readonly models: readonly {
    readonly model: string;
    readonly total: number;
    readonly allocated: number;
    readonly free: number;
  }[];
  readonly nodes: { readonly total: number; readonly ready: number; readonly cordoned: number };
  readonly workloads: { readonly pending: number; readonly running: number };
  readonly pendingByReason: readonly {
    readonly reason: string;
    readonly workloads: number;
    readonly gpu: number;
  }[];
  readonly starved: readonly QueueGpu[];
  readonly borrowing: readonly QueueGpu[];
  readonly sessions: {
    readonly perMinute: number;
    readonly lastId: number | null;
    readonly lastDurationMs: number | null;
    readonly p95Ms: number | null;
    readonly lastStartedAt: string | null;
  };
};

export type Session = {
  readonly id: number;
  readonly shard: string;
  readonly startedAt: string;
  readonly durationMs: number;
  readonly actions: readonly { readonly name: string; readonly ms: number }[];
  readonly nodes: number;
  readonly queues: number;
  readonly pendingBefore: number;
  readonly bound: number;
  readonly evicted: number;
  readonly nominated: number;
  readonly unschedulable: number;
  readonly error: string;
};

export type PodRow = {
  readonly name: string;
  readonly state: string;
  readonly node: string;
  readonly gpu: number;
  readonly devices: readonly number[];
  readonly reason: string;
  readonly message: string;
  readonly createdAt: string;
  readonly startedAt: string | null;
};

export type Explanation = {
  readonly reason: string;
  readonly text: string;
  readonly evidence: readonly {
    readonly name: string;
    readonly asked: string | number | null;
    readonly available: string | number | null;
    readonly where: string;
  }[];
  readonly others: readonly { readonly reason: string; readonly text: string }[];
  readonly stages: readonly {
    readonly stage: string;
    readonly state: "ok" | "blocked" | "waiting" | "unknown";
    readonly text: string;
  }[];
};

export type WorkloadDetail = Workload & {
  readonly podList: readonly PodRow[];
  readonly explain: Explanation;
};

/** What each topic's rows are. */
export type TopicRows = {
  cluster: Cluster;
  queues: Queue;
  workloads: Workload;
  nodes: Node;
  sessions: Session;
};

export function asRow<T>(row: Row): T {
  return row as unknown as T;
}

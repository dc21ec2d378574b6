/**
 * The rows of the live topics. They are the REST representations, as in the schema generated from
 * OpenAPI, plus the key `k`.
 */
import type { components } from "./schema.ts";

type Schemas = components["schemas"];

/** One page of a list; `next` is the cursor of the page after it. */
export type PageOf<T> = { readonly items: readonly T[]; readonly next: string | null };

export type Queue = Schemas["Queue"];
export type Workload = Schemas["Workload"];
export type WorkloadState = Workload["state"];
export type Node = Schemas["Node"];
export type Device = Schemas["Device"];
export type DeviceState = Device["state"];
export type Cluster = Schemas["Cluster"];
export type QueueGpu = Cluster["starved"][number];
export type Session = Schemas["Session"];
export type SessionDetail = Schemas["SessionDetail"];
export type Decision = Schemas["Decision"];
export type Eviction = Schemas["Eviction"];
export type EvictionMatrix = Schemas["EvictionMatrix"];
export type NodeDetail = Schemas["NodeDetail"];
export type NodePod = Schemas["NodePod"];
export type QueueShareSteps = Schemas["QueueShareSteps"];
export type ResourceShare = Schemas["ResourceShare"];
export type ShareStep = Schemas["ShareStep"];
export type AccessEntry = Schemas["AccessEntry"];
export type TopologyName = Schemas["TopologyName"];
export type Topology = Schemas["Topology"];
export type TopologyDomain = Schemas["TopologyDomain"];
export type WorkloadEvent = Schemas["WorkloadEvent"];
export type PodRow = Schemas["WorkloadPod"];
export type Explanation = Schemas["Explanation"];
export type Explain = Schemas["Explain"];
export type PodPlacement = Schemas["PodPlacement"];
export type Unblock = Schemas["Unblock"];
export type Health = Schemas["Health"];
export type Me = Schemas["Me"];
export type Preferences = Schemas["Preferences"];
export type QueueWritten = Schemas["QueueWritten"];

/** The row of a workload's own topic, which also has its pods and its explanation. */
export type WorkloadDetail = Workload & {
  readonly podList: readonly PodRow[];
  readonly explain: Explanation;
};

export type WorkloadUtilisation = Schemas["WorkloadUtilisationCourse"];
export type UsageReport = Schemas["UsageReport"];
export type UsageRow = Schemas["UsageRow"];
export type UsageBy = UsageReport["by"];
export type UsageHistory = Schemas["UsageHistory"];
export type QueuesHistory = Schemas["QueuesHistory"];
export type QueueHistory = Schemas["QueueHistory"];

export type Question = Schemas["Question"];
export type NewWorkload = Schemas["NewWorkload"];
export type SimulationSummary = Schemas["SimulationSummary"];
export type ShareChange = Schemas["ShareChange"];
export type Token = Schemas["Token"];
export type TokenCreated = Schemas["TokenCreated"];
export type Scope = Schemas["ScopesEnum"];
export type User = Schemas["User"];
export type RoleBinding = Schemas["RoleBinding"];
export type Role = Schemas["RoleEnum"];
export type Shard = Schemas["Shard"];
export type ShardWritten = Schemas["ShardWritten"];
/** What holds for one shard: actions, plugins and options with their values. */
export type ShardSettings = Schemas["Settings"];
export type OptionSetting = Schemas["OptionSetting"];
export type BindRequest = Schemas["BindRequest"];
export type Simulation = Schemas["Simulation"];
export type Preview = Schemas["Answer"];
export type Change = Schemas["Change"];
export type ChangeSummary = Schemas["ChangeSummary"];
export type ChangeState = Schemas["ChangeSetState"];
export type Policy = Schemas["Policy"];
export type Policies = Schemas["Policies"];
export type Notification = Schemas["Notification"];
export type NotificationEvent = Schemas["NotificationEvent"];
export type Delivery = Schemas["Delivery"];
export type Price = Schemas["Price"];
export type PriceList = Schemas["PriceList"];
export type ChangeStep = Schemas["ChangeStep"];
export type Difference = Schemas["Difference"];
export type EditAction = Schemas["EditAction"];
export type AuditEntry = Schemas["AuditEntry"];

export type Resource = "gpu" | "cpuMilli" | "memoryBytes";
export const RESOURCES: readonly Resource[] = ["gpu", "cpuMilli", "memoryBytes"];
export type Bound = number | "unlimited";
export type Bounds = { readonly quota?: Bound | undefined; readonly limit?: Bound | undefined };
/** GPU model -> its bounds in a queue. */
export type GpuModels = Readonly<Record<string, Bounds>>;

type Nulls<T> = { readonly [K in keyof T]?: Exclude<T[K], undefined> | null };

/** A merge patch: an absent field stays as it is, null makes a bound unset. */
export type QueuePatch = {
  readonly displayName?: string | null;
  readonly parent?: string | null;
  readonly preemptMinRuntime?: string | null;
  readonly reclaimMinRuntime?: string | null;
  readonly maxRunTime?: string | null;
  readonly requeueDelay?: string | null;
  readonly priority?: number | null;
  readonly quota?: Nulls<Queue["quota"]>;
  readonly limit?: Nulls<Queue["limit"]>;
  readonly weight?: Nulls<Queue["weight"]>;
  readonly labels?: Readonly<Record<string, string | null>>;
  readonly userFairness?: boolean | null;
  /** Replaces the bounds of all models. */
  readonly gpuModels?: GpuModels | null;
};

export type NewQueue = QueuePatch & { readonly name: string };

/** What people do with a workload. */
export type WorkloadAction = "hold" | "release" | "requeue" | "retry-bind";

type Keyed<T> = T & { readonly k: string };

/** The rows of each fixed topic. */
export type TopicRows = {
  cluster: Keyed<Cluster>;
  queues: Keyed<Queue>;
  workloads: Keyed<Workload>;
  nodes: Keyed<Node>;
  sessions: Keyed<Session>;
};

/** A topic that the server filters, e.g. `workloads?state=pending,gated`. */
export type FilteredTopic = `workloads?${string}`;
export type TopicName = keyof TopicRows | FilteredTopic | `workload:${string}` | `node:${string}`;
export type RowOf<N extends TopicName> = N extends keyof TopicRows
  ? TopicRows[N]
  : N extends FilteredTopic
    ? TopicRows["workloads"]
    : N extends `node:${string}`
      ? TopicRows["nodes"]
      : Keyed<WorkloadDetail>;

/**
 * The rows of the live topics. They are the REST representations, named by the schema generated
 * from OpenAPI, with the key `k` added; `asRow` is the one cast from the untyped store to these.
 */
import type { components } from "./schema.ts";

type Schemas = components["schemas"];

export type Queue = Schemas["Queue"];
export type Workload = Schemas["Workload"];
export type WorkloadState = Workload["state"];
export type Node = Schemas["Node"];
export type Device = Schemas["Device"];
export type DeviceState = Device["state"];
export type Cluster = Schemas["Cluster"];
export type QueueGpu = Cluster["starved"][number];
export type Session = Schemas["Session"];
export type PodRow = Schemas["WorkloadPod"];
export type Explanation = Schemas["Explanation"];
export type Health = Schemas["Health"];
export type Me = Schemas["Me"];
export type QueueWritten = Schemas["QueueWritten"];

/** One workload's own topic carries its pods and its explanation with it. */
export type WorkloadDetail = Workload & {
  readonly podList: readonly PodRow[];
  readonly explain: Explanation;
};

export type Resource = "gpu" | "cpuMilli" | "memoryBytes";
export const RESOURCES: readonly Resource[] = ["gpu", "cpuMilli", "memoryBytes"];
export type Bound = number | "unlimited";

type Nulls<T> = { readonly [K in keyof T]?: Exclude<T[K], undefined> | null };

/** A merge patch: an absent field stays, null makes a bound unset. */
export type QueuePatch = {
  readonly priority?: number | null;
  readonly quota?: Nulls<Queue["quota"]>;
  readonly limit?: Nulls<Queue["limit"]>;
  readonly weight?: Nulls<Queue["weight"]>;
};

/** What each topic's rows are. */
export type TopicRows = {
  cluster: Cluster;
  queues: Queue;
  workloads: Workload;
  nodes: Node;
  sessions: Session;
};

export function asRow<T>(row: object): T {
  return row as T;
}

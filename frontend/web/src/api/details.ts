/** What the pages of one object show beyond its row: shares in steps, access, manifests, events, topologies. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import type {
  AccessEntry,
  NodeDetail,
  NodePod,
  QueueShareSteps,
  Topology,
  TopologyName,
  WorkloadEvent,
  WorkloadUtilisation,
} from "../model/rows.ts";
import { call, callText } from "./client.ts";

const REFETCH_MS = 5_000;
/** Lists that change with every scheduling decision are asked for again; the others stay for a while. */
const SLOW_MS = 30_000;

type Items<T> = { readonly items: readonly T[] };

export function useQueueShare(queue: string) {
  return useAnswer<QueueShareSteps>(`/queues/${encodeURIComponent(queue)}/share`, REFETCH_MS);
}

export function useQueueAccess(queue: string) {
  return useAnswer<Items<AccessEntry>>(`/queues/${encodeURIComponent(queue)}/access`, SLOW_MS);
}

export function useNodeDetail(node: string) {
  return useAnswer<NodeDetail>(`/nodes/${encodeURIComponent(node)}`, SLOW_MS);
}

export function useNodePods(node: string) {
  return useAnswer<Items<NodePod>>(`/nodes/${encodeURIComponent(node)}/pods`, REFETCH_MS);
}

export function useWorkloadUtilisation(namespace: string, name: string) {
  const path = [namespace, name].map(encodeURIComponent).join("/");
  return useAnswer<WorkloadUtilisation>(`/workloads/${path}/utilisation`, SLOW_MS);
}

export function useTopologies() {
  return useAnswer<Items<TopologyName>>("/topologies", SLOW_MS);
}

/** Return which nodes are in which domain, and what is placed there; the GPUs of nodes are in the topic `nodes`. */
export function useTopology(name: string) {
  return useAnswer<Topology>(`/topologies/${encodeURIComponent(name)}`, SLOW_MS, name !== "");
}

export function useWorkloadEvents(workload: string) {
  return useAnswer<Items<WorkloadEvent>>(`/workloads/${workload}/events`, REFETCH_MS);
}

/** Return the manifest at a path of the API as YAML. */
export function useYaml(path: string) {
  return useQuery({
    queryKey: ["yaml", path],
    queryFn: ({ signal }) => callText(path, "application/yaml", signal),
    staleTime: REFETCH_MS,
  });
}

function useAnswer<T>(path: string, everyMs: number, enabled = true) {
  return useQuery<T>({
    queryKey: ["details", path],
    queryFn: ({ signal }) => call<T>("GET", path, { signal }),
    refetchInterval: everyMs,
    placeholderData: keepPreviousData,
    enabled,
  });
}

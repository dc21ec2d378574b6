/** Texts about why a pod was placed on its node. */
import { count, gpus as decimals, plural } from "./numbers.ts";

export const PLACED = {
  title: "Why there",
  note: "What the scheduler recorded when it placed each pod",
  columns: ["Pod", "Placed there because", "Score of the node", "Next best", "Other nodes"],
  missingTitle: "Not recorded",
  missing:
    "Each session records a bounded number of placements (the shard's option recorded-placements). These pods were placed before, beyond that number, or by another scheduler.",
  others: (pods: number) => `Nothing is recorded about ${plural(pods, "more pod")}.`,
  none: "none",
  on: "on {node}",
  possible: (possible: number, considered: number, nodes: number) =>
    considered === nodes
      ? `${count(possible)} of ${plural(nodes, "node")} could take it`
      : `${count(possible)} of the ${count(considered)} looked at could take it (${plural(nodes, "node")} in all)`,
} as const;

/** What a part of the score stands for, as the reason why a node won; by the name of the part. */
const BECAUSE: Readonly<Record<string, string>> = {
  binpack: "it is the fullest node with room (strategy binpack: fill nodes up)",
  spread: "it is the emptiest node (strategy spread: take the emptiest node)",
  fragmentation: "it leaves the most GPUs that other pods can use (strategy fragmentation)",
  gpusharingorder: "one of its GPUs is shared already and has room for this pod",
  nodeavailability: "it has room at once; on the next best, pods have yet to leave",
  resourcetype: "it has no GPUs and the pod needs none, so GPUs stay free",
  nominatednode: "the pod was nominated for it before",
  topology: "it is the best domain of the topology the workload asks for",
  podaffinity: "pods are there that this one wants to be near",
  numa: "its CPUs, memory and GPUs are close together (NUMA)",
  promise: "room was made for it there by evicting others",
  "only-node": "no other node could take it",
  name: "several nodes were equally good, and it is the first of them by name",
};

/** The name of a part of the score. */
const TERMS: Readonly<Record<string, string>> = {
  gpusharingorder: "shares a GPU",
  nodeavailability: "room at once",
  resourcetype: "kind of node",
  nominatednode: "nominated",
  podaffinity: "pod affinity",
  numa: "NUMA",
};

/** Why nodes could not take a pod, by the name of a resource or of a rule. */
const REFUSED: Readonly<Record<string, string>> = {
  gpu: "too few free GPUs",
  cpu: "too little CPU",
  memory: "too little memory",
  pods: "too many pods",
  devices: "no GPU with enough of it left",
  rules: "other rules",
  topology: "outside its topology",
  NodeCondition: "not ready or cordoned",
  TaintToleration: "taints it does not tolerate",
  NodeAffinity: "its node selector or affinity",
  ResourceType: "GPUs of another form",
  WorkerNode: "for other kinds of pods",
  VolumeBinding: "its volumes",
  InterPodAffinity: "affinity between pods",
  PodFitsHostPorts: "its host ports are taken",
  GpuModel: "a bound of the GPU model",
  dynamicresources: "its device claims",
};

export function becauseText(decidedBy: string): string {
  return BECAUSE[decidedBy] ?? `of the score of ${decidedBy}`;
}

/** A score or a part of one. */
export function points(value: number): string {
  return decimals(value);
}

export function termText(name: string): string {
  return TERMS[name] ?? name;
}

export function refusedText(reason: string, nodes: number): string {
  return `${count(nodes)}: ${REFUSED[reason] ?? `too little ${reason}`}`;
}

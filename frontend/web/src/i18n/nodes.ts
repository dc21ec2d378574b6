/** Texts of the nodes page. */
import {
  cores,
  gibibytes,
  gpuCount,
  gpus,
  memory,
  modelName,
  plural,
  UNIT,
  utilisation,
} from "./numbers.ts";
import { gpusAllocatedOf } from "./ui.ts";

export const NODES = {
  title: "Nodes",
  card: "GPU grid",
  grid: "GPUs of the nodes",
  search: "Search",
  searchLabel: "Search nodes",
  groupBy: "Group by",
  groupings: { model: "Model", rack: "Rack", zone: "Zone", pool: "Node pool" },
  onlyFree: "Only with free GPUs",
  onlyIdle: "Only allocated but idle",
  idleUnknown:
    "The utilisation of no GPU is known. It is read from the series of the DCGM exporter in Prometheus.",
  emptyTitle: "No nodes yet",
  empty: "Nodes appear here as soon as they join the cluster.",
  noMatchTitle: "No node matches",
  noMatch: "Clear the search, or show full nodes too.",
  noIdle: "Clear the search, or show the other nodes too.",
} as const;

export const NODE_PAGE = {
  all: "All nodes",
  tabList: "Node",
  tabs: { summary: "Summary", yaml: "YAML" },
  missingTitle: "This node was not found",
  missing: "It may have left the cluster. {link}",
  model: "GPU model",
  gpus: "GPUs allocated",
  gpuMemory: "Memory of a GPU",
  utilisation: "Utilisation of allocated GPUs",
  utilisationText: (percent: number | null, idle: number | null) =>
    idle === null || idle === 0
      ? utilisation(percent)
      : `${utilisation(percent)}, ${gpuCount(idle)} idle`,
  cpu: "CPU requested",
  memory: "Memory requested",
  cpuText: (used: number, total: number) => `${cores(used)} of ${cores(total)} cores`,
  memoryText: (used: number, total: number) =>
    `${memory(used)} of ${memory(total)} ${UNIT.memoryBytes}`,
  pool: "Node pool",
  zone: "Zone",
  rack: "Rack",
  state: "State",
  ready: "ready",
  taints: "Taints",
  labels: "Labels",
  noLabels: "No labels",
  devices: "GPUs",
  devicesNote: "one line for each device",
  deviceColumns: ["GPU", "State", "Used", "Utilisation", "Pods", "Queue"],
  idle: "idle for {time}",
  states: {
    free: "free",
    whole: "allocated",
    shared: "shared",
    reserved: "reserved",
    unhealthy: "unhealthy",
  } as Readonly<Record<string, string>>,
  pods: "Pods",
  podColumns: ["Pod", "State", "Queue", "User", "GPUs", "Devices", "CPU", "Memory", "Started"],
  noPods: "No pods",
  noPodsText: "Nothing runs on this node.",
  noGpus: "This node has no GPUs.",
} as const;

export const LEGEND = {
  name: "Legend",
  more: (queues: number) => `and ${plural(queues, "more queue")}`,
  free: "free",
  shared: "shared",
  reserved: "reserved",
  unhealthy: "unhealthy",
} as const;

export const TILE = {
  title: (name: string, zone: string, rack: string) => `${name}, ${zone} ${rack}`.trim(),
  notReady: "not ready",
  cordoned: "cordoned",
  free: (free: number, total: number) => (total === 0 ? "no GPUs" : `${gpus(free)} free`),
  cpu: "CPU",
  memory: "Mem",
  idle: (count: number) => `${gpus(count)} idle`,
  idleTitle: (count: number) => `${gpuCount(count)} allocated but idle`,
  percent: (name: string, percent: number) => `${name} ${Math.round(percent)} %`,
  cpuDetail: (used: number, total: number) =>
    `CPU: ${cores(used)} of ${cores(total)} cores requested`,
  memoryDetail: (used: number, total: number) =>
    `Memory: ${memory(used)} of ${memory(total)} ${UNIT.memoryBytes} requested`,
} as const;

export const DEVICE = {
  title: (index: number, node: string) => `GPU ${index} of ${node}`,
  model: (model: string, memoryBytes: number) =>
    memoryBytes > 0 ? `${model} ${gibibytes(memoryBytes)}` : model,
  free: "Free",
  unhealthy: "Unhealthy",
  user: (user: string) => (user === "" ? "no label “user”" : `user ${user}`),
  since: "running for {time}",
  holder: (gpu: number, queue: string) => `${gpuCount(gpu)} · queue ${queue}`,
  utilisation: (percent: number | null) => `Utilisation ${utilisation(percent)}`,
  group: (group: string) => `Shared group ${group}`,
} as const;

/** The number of nodes, and how many of their GPUs are allocated. */
export function nodesText(nodes: number, allocated: number, total: number): string {
  const counted = plural(nodes, "node");
  return total === 0 ? counted : `${counted}, ${gpusAllocatedOf(allocated, total)}`;
}

const UNNAMED = {
  model: "Without GPUs",
  rack: "No rack",
  zone: "No zone",
  pool: "Default node pool",
} as const;

/** The heading of a group of nodes; an empty name means that the nodes lack the label. */
export function groupTitle(name: string, grouping: keyof typeof UNNAMED): string {
  if (name === "") return UNNAMED[grouping];
  return grouping === "model" ? modelName(name) : name;
}

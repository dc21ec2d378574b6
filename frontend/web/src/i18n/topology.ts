/** Texts of the topology page. */
import { count, gpus, plural } from "./numbers.ts";

export const TOPOLOGY = {
  tabList: "Nodes",
  tabs: { grid: "GPU grid", topology: "Topology" },
  choose: "Topology",
  note: (levels: readonly string[]) => levels.join(" › "),
  tree: "Domains",
  treeNote: "Free GPUs, and the largest gang of single GPUs that fits now",
  free: (free: number, total: number) => `${gpus(free)} of ${gpus(total)} free`,
  gang: (size: number) => (size === 0 ? "no gang fits" : `a gang of ${count(size)} fits`),
  workloads: (workloads: number) => plural(workloads, "workload"),
  nodes: (nodes: number) => plural(nodes, "node"),
  outside: (nodes: number) => `${plural(nodes, "node")} outside: a label of a level is missing`,
  placed: "Workloads across domains",
  placedNote: "The largest first. A workload in one domain needs no wider network.",
  columns: (levels: readonly string[]) => ["Workload", "Queue", "GPUs", "Nodes", ...levels],
  inOne: (name: string) => name,
  inMany: (domains: number) => `${count(domains)} domains`,
  noneTitle: "No topology",
  none: "Create a Topology that names the labels of your nodes, from the widest level to the narrowest, such as block, rack and host.",
  noWorkloads: "Nothing with GPUs is placed here",
} as const;

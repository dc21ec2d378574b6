/** Texts of the simulator. */
import type { SimulationSummary } from "../model/rows.ts";
import { gpus, plural } from "./numbers.ts";

export const SIMULATE = {
  title: "Simulate",
  note: "What would happen if …? The scheduler answers on a copy of the cluster; nothing is written.",
  question: "Question",
  draft: (queues: number) => `With the edits of the draft (${plural(queues, "queue")})`,
  noDraft: "Edits of queues: add them to the draft, then choose it here.",
  workloads: "Added workloads",
  addWorkload: "Add a workload",
  removeWorkload: (number: number) => `Remove workload ${number}`,
  remove: "Remove",
  workload: (number: number) => `Workload ${number}`,
  queue: "Queue",
  pods: "Pods",
  gpu: "GPUs per pod",
  priorityClass: "Priority class",
  defaultClass: "default",
  nodes: "Nodes",
  nodeCount: "Added nodes",
  nodeLike: "Copies of node",
  noNode: "none",
  removedNodes: "Remove nodes",
  cycles: "Scheduling cycles",
  cyclesHint: "1 to 50. An eviction and the start that it makes room for take two.",
  run: "Simulate",
  nothingAsked:
    "Nothing to simulate yet: add a workload, add or remove nodes, or put an edit into the draft.",
  running: "Simulating…",
  forbidden: "You may not simulate. Ask an administrator for a role.",
  answer: "Answer",
  nothing: "Ask a question on the left: the answer appears here, with a link that can be shared.",
  failed: "The simulation failed",
  shares: "Queues whose GPUs change",
  shareColumns: ["Queue", "Allocated", "Fair share"],
  change: (before: number | null, after: number | null) =>
    `${before === null ? "–" : gpus(before)} → ${after === null ? "–" : gpus(after)}`,
  earlier: "Earlier simulations",
  none: "Nobody has asked anything yet",
  earlierColumns: ["Simulation", "By", "When", "Result"],
  number: (id: number) => `#${id}`,
} as const;

const VERDICTS: Record<string, string> = {
  "no-effect": "no effect",
  safe: "evicts nothing",
  evicts: "evicts",
  invalid: "cannot be made",
};

export function resultText({ state, verdict }: SimulationSummary): string {
  if (state === "failed") return "failed";
  return verdict === null ? state : (VERDICTS[verdict] ?? verdict);
}

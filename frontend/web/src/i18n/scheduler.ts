/** Texts of the scheduler's pages: sessions, one session, evictions and the order. */
import { count, gpuCount, milliseconds, plural } from "./numbers.ts";
import { actionName } from "./ui.ts";

export const SCHEDULER = {
  title: "Scheduler",
  tabList: "Scheduler",
  tabs: { sessions: "Sessions", evictions: "Evictions", order: "Order", binds: "Binds" },
  note: "What the latest sessions decided, and how long they took",
  chartTitle: "Time per session",
  chartNote: "allocate, consolidation, reclaim, preempt, and the rest",
  table: "Sessions",
  last: (sessions: number) => `The last ${count(sessions)} sessions. All counts are pods.`,
  emptyTitle: "No session yet",
  empty: "A session starts as soon as a workload arrives.",
  failed: "failed",
  /** The slowest first, because a narrow column shows only the first. */
  actions: (actions: readonly { readonly name: string; readonly ms: number }[]) =>
    [...actions]
      .sort((a, b) => b.ms - a.ms)
      .map(({ name, ms }) => `${actionName(name)} ${milliseconds(ms)}`)
      .join(" · "),
} as const;

export const SESSION_COLUMNS = {
  id: "Session",
  time: "Started",
  shard: "Shard",
  duration: "Duration",
  actions: "Actions",
  nodes: "Nodes",
  pending: "Pending",
  bound: "Bound",
  nominated: "Nominated",
  evicted: "Evicted",
  notPlaced: "Not placed",
} as const;

export const SESSION = {
  title: (id: number | string) => `Session ${id}`,
  all: "All sessions",
  missingTitle: "This session was not found",
  missing: "Sessions are kept for a day. {link}",
  started: "Started",
  shard: "Shard",
  number: "Number in its shard",
  duration: "Duration",
  snapshot: "Reading the cluster",
  commit: "Writing decisions",
  cluster: "Cluster",
  clusterText: (nodes: number, queues: number, workloads: number, pods: number) =>
    [
      plural(nodes, "node"),
      plural(queues, "queue"),
      plural(workloads, "workload"),
      plural(pods, "pod"),
    ].join(", "),
  pending: "Pods waiting at its start",
  notPlaced: "Pods not placed",
  failed: "Some writes failed",
  actions: "Actions",
  actionsNote: "In the order in which they ran",
  actionColumns: ["Action", "Time", "Part of the session", "Tried", "Succeeded"],
  decisions: "Decisions",
  decisionsNote: (listed: number, all: number) =>
    listed < all
      ? `the first ${count(listed)} of ${count(all)}, evictions first`
      : plural(all, "decision"),
  decisionColumns: ["Decision", "Workload", "Queue", "Pods", "GPUs", "Nodes", "Why"],
  nothing: "Nothing was decided",
  nothingText: "No workload got a place, and none lost one.",
  kinds: {
    bind: "placed",
    nominate: "promised a place",
    move: "gets another place",
    evict: "evicted",
  },
  refused: (pods: number) => `${plural(pods, "pod")} refused by the cluster`,
  forWorkload: "for {workload}",
  allocated: "There was free room for it.",
  nominated: "Its place is being freed: evicted pods have to end first.",
  moved: "It was evicted to join free GPUs, and has a place elsewhere.",
  more: (nodes: number) => (nodes < 8 ? "" : " and more"),
} as const;

export const EVICTIONS = {
  title: "Evictions",
  note: "Who took room from whom",
  matrix: "GPUs taken, by queue",
  matrixNote: "Rows got the room, columns lost it. Choose a cell to see its evictions.",
  table: "Evictions by pair of queues",
  corner: "Got the room",
  nobody: "nobody",
  rule: "Rule",
  anyRule: "Any rule",
  rules: {
    reclaim: "Reclaim: a queue below its share takes from one above it",
    preempt: "Preempt: a higher priority in the same queue",
    consolidation: "Consolidation: moved to join free GPUs",
    stalegangeviction: "Stale gang: too few of its pods run",
    requeue: "Requeue: requested by a person",
    maxruntime: "Maximum run time reached",
  } as Readonly<Record<string, string>>,
  clear: "Show all pairs",
  cell: (evictor: string, victim: string, gpu: number, evictions: number) =>
    `${evictor} took ${gpuCount(gpu)} from ${victim} in ${plural(evictions, "eviction")}`,
  hidden: (queues: number, gpu: number) =>
    `${plural(queues, "more queue")} with ${gpuCount(gpu)} are in the list only.`,
  pair: (evictor: string, victim: string) => `${evictor} from ${victim}`,
  columns: ["When", "Workload", "From queue", "Rule", "Room for", "Pods", "GPUs", "Session"],
  emptyTitle: "No evictions in this range",
  empty: "Nothing had to make room for other work.",
} as const;

export const ORDER = {
  note: "Whose turn it is: the scheduler tries waiting workloads in this order",
  table: "Waiting workloads in order",
  count: (shown: number, all: number) => `${count(shown)} of ${plural(all, "waiting workload")}`,
  anyQueue: "All queues",
  queue: "Queue",
  columns: {
    position: "Place",
    inQueue: "In its queue",
    workload: "Workload",
    queue: "Queue",
    gpu: "GPUs",
    priority: "Priority",
    reason: "Why it waits",
    since: "Waiting",
  },
  emptyTitle: "Nothing waits for room",
  empty: "Workloads that could start get a place here as soon as they wait.",
} as const;

/** The short name of a rule by which pods were evicted. */
export function ruleName(rule: string): string {
  return actionName(rule);
}

/** Texts of the overview page. */
import { count, gpuCount, gpus, milliseconds, plural } from "./numbers.ts";
import { gpusAllocatedOf } from "./ui.ts";

export const OVERVIEW = {
  title: "Overview",
  note: "Is the cluster healthy, full and fair?",
  emptyTitle: "No cluster data yet",
  empty: "kaiweb is still reading the cluster. This page fills by itself.",
} as const;

export const GPU_TILE = {
  title: "GPUs",
  ofTotal: (total: number) => `of ${gpus(total)} allocated`,
  free: "free",
  unusable: (amount: number) => ` · ${gpus(amount)} unusable: cordoned, not ready or unhealthy`,
  queue: (queue: string, allocated: number) => `${queue}: ${gpus(allocated)}`,
  more: (queues: number) => `and ${count(queues)} more`,
  /** The last part of the bar, for the queues that are too small for parts of their own. */
  others: (queues: number) => plural(queues, "other queue"),
  /** The text that screen readers read for the bar; `more` queues use GPUs too, but are not named. */
  barText: (
    allocated: number,
    total: number,
    queues: readonly (readonly [string, number])[],
    more: number,
  ) =>
    [
      `${gpusAllocatedOf(allocated, total)}.`,
      queues.map(([queue, amount]) => `${queue} ${gpus(amount)}`).join(", "),
      ...(more > 0 ? [`and ${count(more)} more`] : []),
    ].join(" "),
} as const;

export const MODEL_TILE = {
  title: "By model",
  empty: "No GPUs yet",
  ofTotal: (total: number) => `of ${gpus(total)}`,
} as const;

export const NOW_TILE = {
  title: "Right now",
  workloads: "Workloads",
  running: "running",
  pending: (workloads: number) => `${count(workloads)} pending`,
  nodes: "Nodes",
  ready: (nodes: number) => `of ${count(nodes)} ready`,
  cordoned: (nodes: number) => `${count(nodes)} cordoned`,
  session: "Session",
  last: "last",
  p95: (ms: number) => `p95 ${milliseconds(ms)}`,
  rate: "Rate",
  perMinute: "sessions/min",
} as const;

export const GPU_MAP = {
  title: "GPU map",
  note: "one cell per device, coloured by queue",
  all: "All nodes",
  emptyTitle: "No nodes yet",
  empty: "Nodes with GPUs appear here as soon as they join the cluster.",
} as const;

/** The free GPUs of a cluster that is too large for a map. */
export const FREE_NODES = {
  title: "Free GPUs by node",
  note: "nodes by the number of their whole free GPUs; a pod needs a node with as many as it requests",
  model: (model: string, nodes: number) => `${model}: ${plural(nodes, "node")}`,
  columns: ["Free GPUs of a node", "Nodes"],
  free: (free: number) => (free === 0 ? "none free" : `${count(free)} free`),
} as const;

export const LATEST_SESSIONS = {
  title: "Scheduling sessions",
  note: "time per action",
  all: "All sessions",
  emptyTitle: "No session yet",
  empty: "The scheduler has not run since this database was created.",
} as const;

export const PENDING_REASONS = {
  title: "Why workloads wait",
  note: "pending workloads by reason",
  emptyTitle: "No workload is waiting",
  empty: "Every workload has the resources it requested.",
  summary: (workloads: number) => `${count(workloads)} workloads are pending`,
  columns: ["Reason", "Workloads"],
  gpus: (gpu: number) => `· ${gpuCount(gpu)}`,
} as const;

export const BALANCE = {
  starved: "Starved queues",
  starvedNote: "below fair share with pending workloads",
  starvedEmpty: "No queue is starved",
  starvedColumn: "GPUs below fair share",
  borrowing: "Borrowing queues",
  borrowingNote: "above quota",
  borrowingEmpty: "No queue borrows",
  borrowingColumn: "GPUs above quota",
  queue: "Queue",
  amount: (sign: "−" | "+", gpu: number) => `${sign}${gpus(gpu)}`,
  summary: (column: string, queue: string, gpu: number) =>
    `${column}; most: ${queue} with ${gpus(gpu)}`,
} as const;

export const FIRST_STEPS = {
  title: "First steps",
  left: (steps: number) => `${plural(steps, "step")} left`,
  done: "done",
  open: "open",
  steps: {
    nodes: {
      name: "A node is ready",
      text: "Nodes appear by themselves as soon as they join the cluster.",
      to: "/nodes",
    },
    gpus: {
      name: "GPUs are seen",
      text: "A node shows its GPUs once its device plugin or a driver for device claims reports them.",
      to: "/nodes",
    },
    queue: {
      name: "A queue of your own exists",
      text: "Create a queue for a department, and below it one for each team.",
      to: "/queues",
    },
    workload: {
      name: "A workload was submitted",
      text: "Create a pod with schedulerName kai-scheduler and the label of a queue.",
      to: "/workloads",
    },
    session: {
      name: "The scheduler ran",
      text: "A session starts as soon as a workload arrives. If none does, look at the health banner and at kaiweb doctor.",
      to: "/scheduler",
    },
  },
} as const;

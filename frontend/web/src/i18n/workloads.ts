/** Texts of the workloads pages: the list, one workload and why it waits. */
import { count, gpuCount, gpus, plural, utilisation } from "./numbers.ts";
import { reasonText } from "./reasons.ts";

export const UTILISATION = {
  title: "Utilisation of its GPUs",
  note: "Mean in percent, steps of five minutes; gaps are unknown",
  summary: "Utilisation in percent over the last day",
  series: "Utilisation (%)",
  unknownTitle: "The utilisation is unknown",
  unknown:
    "It is read from the series of the DCGM exporter in Prometheus, and Prometheus has none for the pods of this workload.",
} as const;

export const WORKLOADS = {
  title: "Workloads",
  count: (shown: number, all: number) => `${count(shown)} of ${plural(all, "workload")}`,
  search: "Search",
  searchLabel: "Search workloads",
  anyState: "Any state",
  anyQueue: "Any queue",
  anyReason: "Any reason",
  clear: (filter: string) => `Clear ${filter.toLowerCase()}`,
  clearAll: "Clear filters",
  noMatchTitle: "No workload matches these filters",
  noMatch: "Clear a filter to see more.",
  emptyTitle: "No workloads yet",
  empty: "Create a pod with {scheduler} and a queue label. It appears here.",
  scheduler: "schedulerName: kai-scheduler",
} as const;

export const WORKLOAD_COLUMNS = {
  name: "Workload",
  queue: "Queue",
  state: "State",
  ready: "Ready / min",
  gpu: "GPUs",
  priority: "Priority",
  position: "Position",
  reason: "Reason or nodes",
  age: "Age",
} as const;

/** What a workload is and where; whose it is, if a label says so. */
export function kindIn(kind: string, namespace: string, user = ""): string {
  return `${kind} in ${namespace}${user === "" ? "" : ` · ${user}`}`;
}

/** A reason code and the server's explanation, on one line. */
export function codeAndText(code: string, text: string): string {
  return text === "" ? code : `${code}: ${text}`;
}

export const WORKLOAD = {
  tabs: { why: "Why", timeline: "Timeline", pods: "Pods", placement: "Placement", yaml: "YAML" },
  tabList: "Workload",
  missingTitle: "This workload was not found",
  missing: "It may have been deleted. {link}",
  all: "Show all workloads",
  kind: "Kind",
  user: "User",
  noUser: "no label “user”",
  queue: "Queue",
  priority: "Priority",
  priorityText: (priority: string, isPreemptible: boolean, protectsMinimum: boolean) =>
    `${priority}, ${preemptibility(isPreemptible, protectsMinimum)}`,
  gpus: "GPUs",
  gpuText: (gpu: number, kind: string) => (kind === "none" ? "none" : `${gpus(gpu)} (${kind})`),
  utilisation: "Utilisation",
  utilisationText: (percent: number, idle: number) =>
    idle === 0 ? utilisation(percent) : `${utilisation(percent)}, ${gpuCount(idle)} idle`,
  idle: "idle for {time}",
  members: "Ready / minimum / pods",
  age: "Age",
  started: "Started",
  ago: "{time} ago",
  runDeadline: "Must end by",
  evictions: "Evictions",
  podGroup: "Pod group",
  none: "none",
} as const;

function preemptibility(isPreemptible: boolean, protectsMinimum: boolean): string {
  if (protectsMinimum) return "preemptible above its minimum";
  return isPreemptible ? "preemptible" : "non-preemptible";
}

export const POD_TABLE = {
  title: "Pods",
  region: "Table of pods",
  emptyTitle: "No pods",
  empty: "Its controller has not created them yet, or they were deleted after it finished.",
  columns: ["Pod", "State", "Node", "GPUs", "Devices", "Age", "Message"],
} as const;

export const TIMELINE = {
  title: "Timeline",
  note: "Newest first: what kaiweb recorded, and the events of the cluster",
  columns: ["When", "What", "About", "Text"],
  created: "Created",
  started: "Started",
  evicted: (rule: string) => `Evicted: ${rule}`,
  workload: "the workload",
  pods: (pods: number) => plural(pods, "pod"),
  times: (times: number) => `${count(times)} times`,
  session: (id: number) => `Session ${id}`,
} as const;

export const PLACEMENT = {
  title: "Where its pods are",
  notPlaced: "No pod of it has a place",
  notPlacedText: "The tab Why says what it waits for.",
  columns: ["Node", "Model", "Zone", "Rack", "Pods", "GPUs"],
} as const;

export const WHY = {
  reason: "Reason",
  code: "Reason code",
  remedy: "What ends it:",
  others: "Other blockers",
  stages: "Scheduling steps",
  evidence: "Evidence",
  evidenceTable: "Table of the evidence",
  evidenceColumns: ["What", "Requested", "Available", "Where"],
  position: "Queue position",
  positionOf: (position: number, all: number) => `${count(position)} of ${count(all)}`,
  next: "It is next.",
  ahead: (ahead: number, inQueue: number) =>
    `${count(ahead)} ahead of it, ${count(inQueue)} of them in the same queue.`,
  nearest: "Nearest ahead",
  place: (position: number) => `${count(position)}.`,
  queueAndGpus: (queue: string, gpu: number) => `${queue}, ${gpuCount(gpu)}`,
} as const;

export const UNBLOCK = {
  title: "What would unblock it",
  note: "Tried on a copy of the cluster before it is shown",
  ask: "Find out",
  asking: "Trying it on a copy of the cluster…",
  forbidden: "You may not simulate. Ask an administrator for a role.",
  nothing:
    "Neither a higher bound of its queue nor one more node lets it start within three sessions. The evidence and the steps say what stands in the way.",
  evicted: (workloads: number) =>
    workloads === 0
      ? "Nobody would be evicted for it."
      : `${plural(workloads, "workload")} would be evicted for it.`,
  simulation: "Show the simulation",
  add: "Add to the draft",
  adding: "Adding…",
  notYours: "You may not change this queue. Ask whoever administers it.",
  added: "Added to the draft",
  addedText: "Review and apply it in the bar at the bottom.",
} as const;

/** One sentence about where a workload stands. */
export function stateSentence(state: string, reason: string): string {
  if (state === "running") return "It is running.";
  if (state === "finished") return "It has finished.";
  if (state === "failed") return "It has failed.";
  if (reason === "") return "It is waiting. No reason has been recorded yet.";
  return `${reasonText(reason)}.`;
}

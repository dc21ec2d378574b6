/** Texts for the codes the server sends. The code itself stays visible beside its text. */

const REASONS: Readonly<Record<string, string>> = {
  Unmanaged: "No pod group manages it",
  GroupIncomplete: "Waiting for more of its pods",
  QueueDoesNotExist: "Its queue does not exist",
  QueueOrphan: "Its queue is not a leaf, or an ancestor is missing",
  Held: "On hold",
  Gated: "Held back by a scheduling gate",
  NeverFits: "No node is large enough",
  NonPreemptibleOverQuota: "Non-preemptible and over its queue's quota",
  OverLimit: "The queue's limit is reached",
  PreemptionDelayNotElapsed: "Its preemption delay has not elapsed",
  WaitingForVictims: "Waiting for evicted pods to end",
  StartExpected: "Room is kept for it until running workloads end",
  RoomKept: "Free room is kept for workloads ahead of it",
  DisruptionBudget: "Disruption budgets protect the pods that would make room",
  TopologyFragmented: "No topology domain has enough room",
  NoNodeFits: "No node fits right now",
  DeviceShortage: "Not enough free GPUs",
  GpuModelBound: "The queue may not take more of this GPU model",
  VolumeOrClaim: "A volume or claim cannot be satisfied",
  OrderBehind: "Other workloads were served first",
  BindFailing: "Binding fails and is being retried",
  NotEvaluated: "Not evaluated yet",
};

/** Return the text of a reason code; an unknown code is made readable: "BindFailed" -> "Bind failed". */
export function reasonText(code: string): string {
  return REASONS[code] ?? readable(code);
}

/** Reason code -> what ends the waiting. "The text" is the message of the scheduler, shown beside it. */
const REMEDIES: Readonly<Record<string, string>> = {
  Unmanaged:
    "Correct what the text names: its owner, its queue label or the annotation that skips grouping.",
  GroupIncomplete:
    "Its controller has to create the missing pods. Look at the controller's own events.",
  QueueDoesNotExist: "Create the queue, or change the queue label of the workload.",
  QueueOrphan: "Use a queue without children, or repair its parents on the page Queues.",
  Held: "Release it, or wait until the time that the text names. If the text names a node pool instead, label the pod group with another node pool.",
  Gated: "Whoever set the scheduling gates has to remove them.",
  NeverFits: "Ask for less per pod, or add larger nodes.",
  NonPreemptibleOverQuota:
    "Raise the quota of the queue, or give the workload a preemptible priority class.",
  OverLimit: "Raise the limit of the queue, or wait until its other workloads end.",
  PreemptionDelayNotElapsed:
    "Nothing to do: it may evict others from the time that the text names.",
  WaitingForVictims: "Nothing to do: it starts when the pods named in the text have ended.",
  StartExpected: "Nothing to do: it starts at the time that the text names, or earlier.",
  RoomKept:
    "Declare a maximum run time that ends before the time that the text names, or wait for its turn.",
  DisruptionBudget: "Let the disruption budget allow one more disruption, or free room elsewhere.",
  TopologyFragmented: "Free room within one domain of the topology, or require a wider one.",
  NoNodeFits:
    "Look at the evidence: free CPU or memory on the nodes it may use, or let it tolerate the taint that keeps it off them.",
  DeviceShortage:
    "Ask for fewer GPUs per pod, or wait until GPUs become free on a node it may use.",
  GpuModelBound:
    "Raise the bound of the GPU model that the text names, or let it run on another model.",
  VolumeOrClaim: "Create or correct the volume, the claim or the config map that the text names.",
  OrderBehind:
    "Nothing to do: its turn comes after the workloads ahead of it. A higher priority class moves it up.",
  BindFailing: "Correct the error that the text names. kaiweb then tries again without your help.",
  NotEvaluated: "Wait a moment. If this stays, see whether the page Scheduler shows new sessions.",
};

/** Return what ends the waiting for a reason; "" for an unknown code. */
export function remedyText(code: string): string {
  return REMEDIES[code] ?? "";
}

function readable(code: string): string {
  const words = code
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .replace(/([A-Z])([A-Z][a-z])/g, "$1 $2");
  const [first = "", ...rest] = words.split(/[\s_-]+/);
  const others = rest.map((word) => (/^[A-Z0-9]{2,}$/.test(word) ? word : word.toLowerCase()));
  return [first.charAt(0).toUpperCase() + first.slice(1), ...others].join(" ");
}

const STATES: Readonly<Record<string, string>> = {
  pending: "Pending",
  running: "Running",
  partial: "Partly running",
  finished: "Finished",
  failed: "Failed",
  gated: "Gated",
  binding: "Binding",
  succeeded: "Succeeded",
  terminating: "Terminating",
};

export function stateText(state: string): string {
  return STATES[state] ?? readable(state);
}

const STAGES: Readonly<Record<string, string>> = {
  managed: "Managed by kaiweb",
  grouped: "Pod group complete",
  queue: "Queue",
  quota: "Quota",
  limit: "Limit",
  order: "Queue position",
  nodes: "Nodes",
  topology: "Topology",
  volumes: "Volumes and claims",
  bind: "Bound",
  started: "Started",
};

export function stageText(stage: string): string {
  return STAGES[stage] ?? readable(stage);
}

const STAGE_STATES: Readonly<Record<string, string>> = {
  ok: "done",
  blocked: "blocked here",
  waiting: "waiting here",
  unknown: "unknown",
};

export function stageStateText(state: string): string {
  return STAGE_STATES[state] ?? readable(state);
}

/** Texts for the codes the server sends. The code itself stays visible beside its text. */

const REASONS: Readonly<Record<string, string>> = {
  Unmanaged: "No pod group manages it",
  GroupIncomplete: "Waiting for more of its pods",
  QueueDoesNotExist: "Its queue does not exist",
  QueueOrphan: "Its queue is not a leaf, or an ancestor is missing",
  Held: "Not retried in this node pool (single attempt requested)",
  Gated: "Held back by a scheduling gate",
  NeverFits: "No node is large enough",
  NonPreemptibleOverQuota: "Non-preemptible and over its queue's quota",
  OverLimit: "The queue's limit is reached",
  PreemptionDelayNotElapsed: "Its preemption delay has not elapsed",
  WaitingForVictims: "Waiting for evicted pods to end",
  DisruptionBudget: "Disruption budgets protect the pods that would make room",
  TopologyFragmented: "No topology domain has enough room",
  NoNodeFits: "No node fits right now",
  DeviceShortage: "Not enough free GPUs",
  VolumeOrClaim: "A volume or claim cannot be satisfied",
  OrderBehind: "Other workloads were served first",
  BindFailing: "Binding fails and is being retried",
  NotEvaluated: "Not evaluated yet",
};

/** Return the text of a reason code; an unknown code is made readable: "BindFailed" -> "Bind failed". */
export function reasonText(code: string): string {
  return REASONS[code] ?? readable(code);
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

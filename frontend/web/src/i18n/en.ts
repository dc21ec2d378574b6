/** Words for the codes the backend sends. The code itself stays visible; this is its plain meaning. */

export const REASONS: Readonly<Record<string, string>> = {
  Unmanaged: "No pod group manages it",
  GroupIncomplete: "Waiting for more of its pods",
  NotReady: "Waiting for more of its pods",
  QueueDoesNotExist: "Its queue does not exist",
  QueueOrphan: "Its queue is no leaf of a whole tree",
  Held: "Tried once, as it asked; waits for another node pool",
  Gated: "Held back by a scheduling gate",
  NeverFits: "No node could ever hold it",
  NonPreemptibleOverQuota: "Over quota and not preemptible",
  OverLimit: "The queue's limit is reached",
  PreemptionDelayNotElapsed: "Still inside its preemption delay",
  WaitingForVictims: "Its place is being freed",
  BudgetBlocked: "A disruption budget protects the victims",
  TopologyFragmented: "No topology domain has enough room",
  NoNodeFits: "No node fits right now",
  DeviceShortage: "Not enough free GPUs",
  VolumeOrClaim: "A volume or claim cannot be satisfied",
  OrderBehind: "Others went first",
  BindFailing: "Binding fails and is retried",
  NotEvaluated: "Not looked at yet",
  PodSchedulingErrors: "No node fits right now",
  Unschedulable: "Cannot be scheduled right now",
};

export function reasonWords(code: string): string {
  return REASONS[code] ?? code;
}

export const STATES: Readonly<Record<string, string>> = {
  pending: "Pending",
  running: "Running",
  partial: "Partly running",
  finished: "Finished",
  failed: "Failed",
  gated: "Gated",
  binding: "Binding",
  succeeded: "Succeeded",
  terminating: "Ending",
};

export const STAGES: Readonly<Record<string, string>> = {
  managed: "Managed by kaiweb",
  grouped: "Grouped",
  queue: "Queue",
  quota: "Quota",
  limit: "Limit",
  order: "Order",
  nodes: "Nodes",
  topology: "Topology",
  volumes: "Volumes and claims",
  bind: "Bound",
  started: "Started",
};

/** What a failed check of the installation means for whoever looks at the page. */
export const HEALTH: Readonly<Record<string, string>> = {
  database: "Nothing can be saved",
  migrations: "The database is not prepared",
  broker: "Scheduling is interrupted",
  cluster: "The cluster or its configuration is missing",
  processes: "A part of kaiweb does not work",
  cycles: "Nothing is scheduled",
  mirror: "What you see is old",
  readiness: "The state of kaiweb is not known",
};

const REMEDIES: Readonly<Record<string, string>> = {
  database: "Look for a full disk or a database that is away.",
  broker: "Look at the broker (Redis).",
  cluster: "Look at the API server and Config kai-config.",
  processes: "It is started again by itself; if it comes back, look at its log.",
  cycles: "The scheduler is started again by itself; if this stays, look at its log.",
  mirror: "The mirror is started again by itself; if this stays, look at its log.",
};

export function healthWords(check: string, fault: string, since: string): string {
  const time = new Date(since).toLocaleTimeString();
  return [`since ${time}: ${fault}.`, REMEDIES[check]].filter(Boolean).join(" ");
}

export function leftOutWords(object: {
  process: string;
  kind: string;
  namespace: string;
  name: string;
}): string {
  const key = object.namespace ? `${object.namespace}/${object.name}` : object.name;
  return `${object.process} leaves out ${object.kind} ${key} until it changes; edit or delete it:`;
}

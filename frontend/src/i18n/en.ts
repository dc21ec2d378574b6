/** Words for the codes the backend sends. The code itself stays visible; this is its plain meaning. */

export const REASONS: Readonly<Record<string, string>> = {
  Unmanaged: "Not taken over by kaiweb yet",
  GroupIncomplete: "Waiting for more of its pods",
  NotReady: "Waiting for more of its pods",
  QueueDoesNotExist: "Its queue does not exist",
  QueueOrphan: "Its queue hangs under a missing parent",
  Held: "Held by a person",
  Gated: "Held back by a scheduling gate",
  NeverFits: "No node could ever hold it",
  NonPreemptibleOverQuota: "Over quota and not preemptible",
  OverLimit: "The queue's limit is reached",
  PreemptionDelayNotElapsed: "Still inside its preemption delay",
  WaitingForVictims: "Waiting for evicted pods to leave",
  BudgetBlocked: "A disruption budget protects the victims",
  TopologyFragmented: "No topology domain has enough room",
  NoNodeFits: "No node fits right now",
  DeviceShortage: "Not enough free GPUs",
  VolumeOrClaim: "A volume or claim cannot be satisfied",
  OrderBehind: "Others go first",
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

import type { Workload, WorkloadAction } from "../../model/rows.ts";

const WITH_RUNNING_PODS = ["running", "partial"];

/** Return the actions that make sense for a workload in its present state. */
export function actionsFor(workload: Workload): WorkloadAction[] {
  const { state, hold, reason, kind } = workload;
  const hasEnded = state === "finished" || state === "failed";
  if (hasEnded || reason === "Unmanaged") return [];
  const actions: WorkloadAction[] = [hold ? "release" : "hold"];
  // Nothing would create a bare pod again.
  if (WITH_RUNNING_PODS.includes(state) && kind !== "Pod") actions.push("requeue");
  if (reason === "BindFailing") actions.push("retry-bind");
  return actions;
}

/** Return the moment a hold of some hours ends as RFC 3339, or undefined for one that lasts until it is released. */
export function holdEnd(hours: number, now: number): string | undefined {
  return hours === 0 ? undefined : new Date(now + hours * 3_600_000).toISOString();
}

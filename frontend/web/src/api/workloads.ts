/** What people do with workloads: hold, release, requeue, and retry a failed bind. */
import type { WorkloadAction } from "../model/rows.ts";
import { call } from "./client.ts";

/** Let the pods that failed on a node be tried again, there too. */
export function retryBindsOn(node: string): Promise<unknown> {
  return call("POST", `/nodes/${encodeURIComponent(node)}/retry-bind`, {});
}

export type ActionBody = { readonly reason: string; readonly until?: string };

export function actOnWorkload(
  { namespace, name }: { readonly namespace: string; readonly name: string },
  action: WorkloadAction,
  body: ActionBody,
): Promise<unknown> {
  const path = `/workloads/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}/${action}`;
  return call("POST", path, action === "retry-bind" ? {} : { body });
}

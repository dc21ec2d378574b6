/** What people ask about workloads and do with them: why, what would help, hold, release, requeue, retry a failed bind. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import type { Explain, WorkloadAction } from "../model/rows.ts";
import { call } from "./client.ts";

const EVERY_MS = 10_000;
/** Simulations show what would help; together they may take this long. */
const VERIFY_TIMEOUT_MS = 30_000;

type Named = { readonly namespace: string; readonly name: string };

/** Return why the workload waits, and why its placed pods are on their nodes. */
export function useExplain(workload: Named) {
  const path = `${pathOf(workload)}/explain`;
  return useQuery({
    queryKey: ["explain", path],
    queryFn: ({ signal }) => call<Explain>("GET", path, { signal }),
    refetchInterval: EVERY_MS,
    placeholderData: keepPreviousData,
  });
}

/** Return what would let the workload start, as simulations have shown. */
export async function askUnblocks(workload: Named): Promise<NonNullable<Explain["unblocks"]>> {
  const signal = AbortSignal.timeout(VERIFY_TIMEOUT_MS);
  const path = `${pathOf(workload)}/explain?verify=true`;
  return (await call<Explain>("GET", path, { signal })).unblocks ?? [];
}

/** Let the pods that failed on a node be tried again, there too. */
export function retryBindsOn(node: string): Promise<unknown> {
  return call("POST", `/nodes/${encodeURIComponent(node)}/retry-bind`, {});
}

export type ActionBody = { readonly reason: string; readonly until?: string };

export function actOnWorkload(
  workload: Named,
  action: WorkloadAction,
  body: ActionBody,
): Promise<unknown> {
  const path = `${pathOf(workload)}/${action}`;
  return call("POST", path, action === "retry-bind" ? {} : { body });
}

function pathOf({ namespace, name }: Named): string {
  return `/workloads/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
}

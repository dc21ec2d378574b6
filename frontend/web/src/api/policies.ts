/** The policies about changes of queues. */
import { useQuery } from "@tanstack/react-query";
import type { Policies } from "../model/rows.ts";
import { call } from "./client.ts";

export const POLICIES_KEY = ["policies"];
export type PolicyValues = Pick<Policies, "approval" | "belowUse">;

export function usePolicies() {
  return useQuery({
    queryKey: POLICIES_KEY,
    queryFn: ({ signal }) => call<Policies>("GET", "/policies", { signal }),
  });
}

export function writePolicies(
  values: PolicyValues,
  etag: string,
  reason: string,
): Promise<Policies> {
  const query = reason === "" ? "" : `?${new URLSearchParams({ reason })}`;
  return call("PATCH", `/policies${query}`, { body: values, headers: { "If-Match": etag } });
}

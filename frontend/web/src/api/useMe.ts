import { useQuery } from "@tanstack/react-query";
import type { Me } from "../model/rows.ts";
import { bootMe, fetchMe } from "./client.ts";

const STALE_MS = 60_000;

/** Return the signed-in user and their rights; the page itself carries the first answer. */
export function useMe(): Me | undefined {
  const query = useQuery({
    queryKey: ["me"],
    queryFn: ({ signal }) => fetchMe(signal),
    initialData: () => bootMe() ?? undefined,
    staleTime: STALE_MS,
  });
  return query.data;
}

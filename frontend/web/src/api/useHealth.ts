import { useQuery } from "@tanstack/react-query";
import type { Health } from "../model/rows.ts";
import { fetchHealth } from "./client.ts";

const REFETCH_MS = 10_000;

/** Poll the health of the installation. A failed request is ignored: the live indicator shows it. */
export function useHealth(): Health | undefined {
  const query = useQuery({
    queryKey: ["health"],
    queryFn: ({ signal }) => fetchHealth(signal),
    refetchInterval: REFETCH_MS,
    staleTime: REFETCH_MS,
    retry: false,
  });
  return query.data;
}

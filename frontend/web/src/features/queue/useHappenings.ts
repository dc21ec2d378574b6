import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { listAudit } from "../../api/changes.ts";
import { listEvictions } from "../../api/scheduling.ts";
import { RANGES, type RangeName } from "../../api/usage.ts";
import { happeningsOf } from "../../model/marks.ts";

const REFETCH_MS = 60_000;

/** Return the edits of a queue and the evictions of its work in a range that ends now, newest first. */
export function useHappenings(queue: string, range: RangeName) {
  return useQuery({
    queryKey: ["happenings", queue, range],
    queryFn: async ({ signal }) => {
      const since = new Date(Date.now() - RANGES[range]).toISOString();
      const filter = { queue, actor: "", kind: "queue", state: "", since, until: "" };
      const [audit, evictions] = await Promise.all([
        listAudit(filter, "", signal),
        listEvictions(range, { queue }, "", signal),
      ]);
      return happeningsOf(audit.items, evictions.items);
    },
    placeholderData: keepPreviousData,
    refetchInterval: REFETCH_MS,
  });
}

/** Sessions of the scheduler, and what they evicted. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import type {
  BindRequest,
  Eviction,
  EvictionMatrix,
  PageOf,
  Session,
  SessionDetail,
} from "../model/rows.ts";
import { call } from "./client.ts";
import { ApiProblem } from "./problem.ts";
import { RANGES, type RangeName } from "./usage.ts";

const SESSIONS_PER_PAGE = 1_000;
const ROWS_PER_PAGE = 100;
const REFETCH_MS = 5_000;

/** Which evictions a list shows; an empty text stands for all. */
type EvictionFilter = {
  readonly queue?: string;
  readonly evictorQueue?: string;
  readonly rule?: string;
  readonly workload?: string;
};

export function listSessions(cursor: string, signal: AbortSignal): Promise<PageOf<Session>> {
  const query = new URLSearchParams({
    limit: String(SESSIONS_PER_PAGE),
    ...(cursor && { cursor }),
  });
  return call("GET", `/sessions?${query}`, { signal });
}

/** Return one session with its decisions; it never changes. */
export function useSession(id: string) {
  return useQuery({
    queryKey: ["session", id],
    queryFn: ({ signal }) => call<SessionDetail>("GET", `/sessions/${id}`, { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** Return the sums of evictions by pair of queues, in a range that ends now. */
export function useEvictionMatrix(range: RangeName) {
  return useQuery({
    queryKey: ["eviction-matrix", range],
    queryFn: ({ signal }) =>
      call<EvictionMatrix>("GET", `/evictions/matrix?${since(range)}`, { signal }),
    placeholderData: keepPreviousData,
    refetchInterval: REFETCH_MS,
  });
}

export function listEvictions(
  range: RangeName,
  filter: EvictionFilter,
  cursor: string,
  signal: AbortSignal,
): Promise<PageOf<Eviction>> {
  const query = since(range);
  query.set("limit", String(ROWS_PER_PAGE));
  for (const [name, value] of Object.entries({ ...filter, cursor }))
    if (value) query.set(name, value);
  return call("GET", `/evictions?${query}`, { signal });
}

/** Return the bind requests in a phase; an empty text stands for all. */
export function listBindRequests(
  phase: string,
  cursor: string,
  signal: AbortSignal,
): Promise<PageOf<BindRequest>> {
  const query = new URLSearchParams({ limit: String(ROWS_PER_PAGE) });
  for (const [name, value] of Object.entries({ phase, cursor })) if (value) query.set(name, value);
  return call("GET", `/bind-requests?${query}`, { signal });
}

/** Return one bind request, by namespace and name; null once it is gone. */
export function useBindRequest(key: string) {
  const path = key.split("/").map(encodeURIComponent).join("/");
  return useQuery({
    queryKey: ["bind-request", key],
    queryFn: async ({ signal }) => {
      try {
        return await call<BindRequest>("GET", `/bind-requests/${path}`, { signal });
      } catch (error) {
        if (error instanceof ApiProblem && error.status === 404) return null;
        throw error;
      }
    },
    refetchInterval: REFETCH_MS,
  });
}

function since(range: RangeName): URLSearchParams {
  return new URLSearchParams({ from: new Date(Date.now() - RANGES[range]).toISOString() });
}

/** History and usage. A range is a length that ends now; the server chooses the step. */
import { keepPreviousData, type UseQueryResult, useQuery } from "@tanstack/react-query";
import type {
  QueueHistory,
  QueuesHistory,
  UsageBy,
  UsageHistory,
  UsageReport,
} from "../model/rows.ts";
import { call } from "./client.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** The ranges that pages offer, with their lengths. */
export const RANGES = {
  "1h": HOUR_MS,
  "24h": DAY_MS,
  "7d": 7 * DAY_MS,
  "30d": 30 * DAY_MS,
  "90d": 90 * DAY_MS,
  "1y": 365 * DAY_MS,
} as const;
export type RangeName = keyof typeof RANGES;

/** Bars are per day, except in ranges too short for days. */
const BAR_STEP: Readonly<Record<RangeName, number>> = {
  "1h": 300,
  "24h": 3_600,
  "7d": 86_400,
  "30d": 86_400,
  "90d": 86_400,
  "1y": 86_400,
};
const REFETCH_MS = 60_000;
const MAX_ROWS = 1_000;

/** Return the query of a range that ends now. Long ranges begin with a whole day, as their bars do. */
export function rangeQuery(range: RangeName, now = Date.now()): URLSearchParams {
  const start = now - RANGES[range];
  const unit = BAR_STEP[range] * 1_000;
  const from = new Date(range === "1h" ? start : Math.ceil(start / unit) * unit - unit);
  return new URLSearchParams({ from: from.toISOString() });
}

export function useUsage(by: UsageBy, range: RangeName): UseQueryResult<UsageReport> {
  return useHistoryQuery(["usage", by, range], (signal) => {
    const query = rangeQuery(range);
    query.set("by", by);
    query.set("limit", String(MAX_ROWS));
    return call<UsageReport>("GET", `/usage?${query}`, { signal });
  });
}

export function useUsageHistory(range: RangeName): UseQueryResult<UsageHistory> {
  return useHistoryQuery(["usage-history", range], (signal) => {
    const query = rangeQuery(range);
    query.set("step", String(BAR_STEP[range]));
    return call<UsageHistory>("GET", `/history/usage?${query}`, { signal });
  });
}

export function useQueueHistory(name: string, range: RangeName): UseQueryResult<QueueHistory> {
  return useHistoryQuery(["queue-history", name, range], (signal) =>
    call<QueueHistory>("GET", `/queues/${encodeURIComponent(name)}/history?${rangeQuery(range)}`, {
      signal,
    }),
  );
}

/** Return the allocated GPUs of several queues, in one request; none for no queues. */
export function useQueuesHistory(
  names: readonly string[],
  range: RangeName,
): UseQueryResult<QueuesHistory> {
  return useHistoryQuery(
    ["queues-history", names.join(","), range],
    (signal) => {
      const query = rangeQuery(range);
      query.set("queue", names.join(","));
      query.set("fields", "allocated");
      return call<QueuesHistory>("GET", `/history/queues?${query}`, { signal });
    },
    names.length > 0,
  );
}

/** Return the address of a report as a CSV file. */
export function usageCsv(by: UsageBy, range: RangeName): string {
  const query = rangeQuery(range);
  query.set("by", by);
  query.set("format", "csv");
  return `/api/v1/usage?${query}`;
}

function useHistoryQuery<T>(
  queryKey: readonly string[],
  load: (signal: AbortSignal) => Promise<T>,
  enabled = true,
): UseQueryResult<T> {
  return useQuery<T>({
    queryKey,
    queryFn: ({ signal }) => load(signal),
    enabled,
    // The data of the previous range stays in view while another range is loading.
    placeholderData: keepPreviousData,
    refetchInterval: REFETCH_MS,
    staleTime: REFETCH_MS / 2,
  });
}

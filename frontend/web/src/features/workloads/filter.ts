import type { Workload } from "../../model/rows.ts";

/** The filters of the workloads page; an empty string means no filter. */
export type WorkloadFilter = {
  readonly state: string;
  readonly queue: string;
  readonly reason: string;
  readonly text: string;
};

/** Return the filter that the query string of the page states, its text in lower case. */
export function readFilter(search: URLSearchParams): WorkloadFilter {
  return {
    state: search.get("state") ?? "",
    queue: search.get("queue") ?? "",
    reason: search.get("reason") ?? "",
    text: (search.get("q") ?? "").trim().toLowerCase(),
  };
}

/** Return the rows that match. A queue filter also matches the queues below that queue. */
export function filterWorkloads<T extends Workload>(
  rows: Iterable<T>,
  filter: WorkloadFilter,
  isUnder: (queue: string, ancestor: string) => boolean,
): T[] {
  const matching: T[] = [];
  for (const row of rows) {
    if (filter.state !== "" && row.state !== filter.state) continue;
    if (filter.queue !== "" && !isUnder(row.queue, filter.queue)) continue;
    if (filter.reason !== "" && row.reason !== filter.reason) continue;
    if (filter.text !== "" && !searchText(row).includes(filter.text)) continue;
    matching.push(row);
  }
  return matching;
}

function searchText(row: Workload): string {
  return `${row.namespace}/${row.name} ${row.owner} ${row.user} ${row.kind} ${row.queue} ${row.reasonText}`.toLowerCase();
}

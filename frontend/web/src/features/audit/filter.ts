import type { AuditFilter } from "../../api/changes.ts";

/** Return the filter that the address of the page states. Days are days of the user's time zone, `until` included. */
export function readAuditFilter(search: URLSearchParams): AuditFilter {
  return {
    queue: search.get("queue") ?? "",
    actor: (search.get("actor") ?? "").trim(),
    kind: search.get("kind") ?? "",
    state: search.get("state") ?? "",
    since: startOfDay(search.get("since"), 0),
    until: startOfDay(search.get("until"), 1),
  };
}

/** Return the first moment of a day, or of a later one, as UTC; "" for none. */
function startOfDay(day: string | null, daysLater: number): string {
  const start = new Date(`${day}T00:00`);
  if (day === null || Number.isNaN(start.getTime())) return "";
  start.setDate(start.getDate() + daysLater);
  return start.toISOString();
}

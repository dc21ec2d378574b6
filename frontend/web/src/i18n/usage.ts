/** Texts of the usage page, the history of a queue and their charts. */
import { count, gpuCount, gpus, plural, span } from "./numbers.ts";

const hours = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const percent = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 0 });

/** GPU-hours without their unit. */
export function gpuHours(value: number): string {
  return hours.format(value);
}

export function money(value: number | null, currency: string | null): string {
  if (value === null || currency === null) return "–";
  return `${value.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 })} ${currency}`;
}

export const RANGE_NAMES = {
  "1h": "1 hour",
  "24h": "24 hours",
  "7d": "7 days",
  "30d": "30 days",
  "90d": "90 days",
  "1y": "1 year",
} as const;

export const USAGE = {
  title: "Usage",
  note: "GPU-hours in quota, over quota and idle. Days are those of UTC.",
  range: "Range",
  by: "Rows",
  bys: { queue: "Queues", owner: "Users", model: "GPU models" },
  held: "Held",
  inQuota: "In quota",
  overQuota: "Over quota",
  idle: "Idle",
  hours: "GPU-hours",
  ofCapacity: (part: number) => `${percent.format(part)} of all GPUs`,
  notUsed: "Held but not used",
  ofHeld: (part: number) => `${percent.format(part)} of the held GPU-hours of which it is known`,
  notUsedUnknown: (isConfigured: boolean, error: string) => {
    const text = "Held but not used: unknown.";
    if (error !== "") return `${text} The series of the devices (DCGM) cannot be read: ${error}`;
    return isConfigured
      ? `${text} Prometheus has no series of the DCGM exporter for GPUs that pods hold.`
      : `${text} kaiweb reads it from the series of the DCGM exporter; name a Prometheus in kai-config or KAIWEB_PROMETHEUS_URL.`;
  },
  notUsedNote: (hours: string, below: number) =>
    `A held GPU counts as not used while its utilisation is below ${below}%. It is unknown for ${hours} held GPU-hours.`,
  unknown: "unknown",
  cost: "Cost",
  byPrices: "by the price list",
  perDay: "GPU-hours per day",
  perStep: "GPU-hours over time",
  perDayNote: "Gaps were not observed, which is not the same as idle",
  who: "Who used it",
  table: "Usage",
  csv: "CSV file",
  total: "All work",
  observed: (part: number) =>
    `${part > 0 && part < 0.01 ? "Less than 1%" : percent.format(part)} of the range was observed`,
  emptyTitle: "No usage in this range",
  empty: "The first sums appear a minute after kaiweb starts to watch the cluster.",
  noUser: "No user label",
  notPlaced: "Waiting, no model yet",
  compare: "Compare queues",
  compareNote: "Average allocated GPUs",
  first: "First queue",
  second: "Second queue",
  choose: "Choose a queue",
  chooseTwo: "Choose two queues to see their use over the same time.",
  columns: {
    queue: "Queue",
    owner: "User",
    model: "GPU model",
    gpuHours: "GPU-hours",
    inQuota: "In quota",
    overQuota: "Over quota",
    waiting: "Waited for",
    notUsed: "Not used",
    cost: "Cost",
  },
} as const;

export const HISTORY = {
  allocation: "Allocated GPUs",
  allocationNote: "Against quota, limit and fair share; gaps were not observed",
  allocated: "Allocated",
  quota: "Quota",
  limit: "Limit",
  share: "Fair share",
  waiting: "Waited for",
  happenings: "Changes and evictions",
  happeningsNote:
    "The signs in the chart: ◆ the queue was changed, ▼ work of the queue was evicted. The newest of each are listed.",
  happeningColumns: ["When", "What", "Who or what", "Details"],
  changed: "◆ Changed",
  evicted: "▼ Evicted",
  evictedBy: (rule: string, pods: number, gpu: number) =>
    `${rule} · ${plural(pods, "pod")} · ${gpuCount(gpu)}`,
  marked: { edit: "changes", eviction: "evictions" },
  mark: (kind: string, number: number, when: string) => `${count(number)} ${kind}, ${when}`,
  quietTitle: "Nothing was changed or evicted",
  quiet: "Edits of this queue and evictions of its work appear here, and as signs in the chart.",
  days: "Waiting times and evictions by day",
  daysNote: "From creation, or the last eviction, to the start. Days are those of UTC.",
  noDaysTitle: "Nothing started in this range",
  noDays: "Starts and evictions are counted from the moment kaiweb watches the cluster.",
  dayTable: "Days",
  dayColumns: ["Day", "Starts", "Waited (median)", "Waited (90 %)", "Longest", "Evictions"],
  seconds: (value: number | null) => (value === null ? "–" : span(value * 1_000)),
  link: "Allocation over time",
} as const;

export const SERIES_CHART = {
  time: "Time (UTC)",
  unknown: "not observed",
  value: gpus,
  summary: (names: readonly string[], steps: number) =>
    `${names.join(", ")} in ${plural(steps, "step")}`,
  trend: (name: string, latest: number | null) =>
    latest === null
      ? `${name}: the last hour was not observed`
      : `${name}: allocated GPUs in the last hour, now ${gpus(latest)}`,
} as const;

const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
const clock = new Intl.DateTimeFormat("en-GB", {
  hour: "2-digit",
  minute: "2-digit",
  timeZone: "UTC",
});

/** The label of a step: a day, a time, or both where steps of hours run over days. */
export function stepLabel(iso: string, stepSeconds: number, isLong: boolean): string {
  const date = new Date(iso);
  if (stepSeconds >= 86_400) return day.format(date);
  return isLong ? `${day.format(date)} ${clock.format(date)}` : clock.format(date);
}

/** Texts of parts that several pages share: states, tables, charts, bars and GPU cells. */
import type { Bound, Device, Resource } from "../model/rows.ts";
import { amount, bound, count, gpus, modelName, UNIT, utilisation } from "./numbers.ts";

export const CLOSE = "Close";
export const NONE = "–";
/** Instead of a count, while only the first rows of a long list have arrived. */
export const LOADING_MORE = "These are the first rows. The others are loading…";
export const DISMISS = "Dismiss";
export const CANCEL = "Cancel";
export const OLDER = "Show older";
export const REFUSED = "The server refused this";

export function documentTitle(page: string): string {
  return `${page} · kaiweb`;
}

export const STATES_TEXT = {
  loading: "Loading",
  retry: "Try again",
  request: (id: string) => `Request ${id}`,
  since: (time: string) => `since ${time}`,
  copyDetails: "Copy details",
  copied: "Copied",
  brokenPart: "This part of the page could not be shown",
  missingPart: "This part of the page could not be loaded",
} as const;

export const TABLE = {
  columns: "Choose columns",
  /** Shown while rows keep their places although their order has changed. */
  sortNow: (rows: number) =>
    rows === 1
      ? "1 row is out of order: sort now"
      : `${count(rows)} rows are out of order: sort now`,
} as const;

export const CHART = {
  asChart: "Show as chart",
  asTable: "Show as table",
  csv: "CSV",
} as const;

export const SESSION_CHART = {
  columns: ["Session", "Time", "Milliseconds", "Bound", "Evicted"],
  summary: (sessions: number, slowest: string) =>
    `Duration of the last ${sessions} sessions; the slowest took ${slowest}`,
  slowest: (duration: string) => `Slowest session ${duration}`,
  session: (id: number, duration: string, bound: number) =>
    `Session ${id}: ${duration}, ${bound} bound`,
} as const;

const ACTIONS: Readonly<Record<string, string>> = { stalegangeviction: "stale gang eviction" };

/** The name of a scheduler action. */
export function actionName(action: string): string {
  return ACTIONS[action] ?? action;
}

export const BULLET_LEGEND = {
  nonPreemptible: "non-preemptible",
  inQuota: "in quota",
  overQuota: "over quota",
  waiting: "waiting",
  quota: "quota",
  share: "fair share",
  limit: "limit",
} as const;

export type BulletAmounts = {
  readonly resource: Resource;
  readonly allocated: number;
  readonly requested: number;
  readonly quota: Bound | undefined;
  readonly limit: Bound | undefined;
  readonly share: number | null;
};

/** Describe a bullet bar for people who do not see it. */
export function bulletText(bullet: BulletAmounts): string {
  const { resource, allocated, requested, quota, limit, share } = bullet;
  const parts = [
    `${amount(resource, allocated)} ${UNIT[resource]} allocated`,
    `${amount(resource, requested)} requested`,
    `quota ${bound(resource, quota)}`,
    `limit ${bound(resource, limit)}`,
  ];
  if (share !== null) parts.push(`fair share ${amount(resource, share)}`);
  return parts.join(", ");
}

/** Describe one GPU device: its state, and the pods that hold it. */
export function deviceText(device: Device): string {
  const { utilisation: percent, idleSince } = device;
  const text = holdersText(device);
  if (percent === null) return text;
  return `${text}, utilisation ${utilisation(percent)}${idleSince === null ? "" : ", idle"}`;
}

function holdersText({ index, state, used, group, holders }: Device): string {
  const pods = holders
    .map((holder) => `${holder.pod} (${holder.queue}, ${gpus(holder.gpu)})`)
    .join(", ");
  switch (state) {
    case "free":
      return `GPU ${index}: free`;
    case "unhealthy":
      return `GPU ${index}: unhealthy`;
    case "reserved":
      return `GPU ${index}: reserved${pods === "" ? "" : ` for ${pods}`}`;
    case "shared":
      return `GPU ${index}: ${gpus(used)} shared${group === "" ? "" : ` in group ${group}`} by ${pods || "unknown pods"}`;
    default:
      return `GPU ${index}: ${pods || "allocated"}`;
  }
}

export function allocatedOf(allocated: number, total: number): string {
  return `${gpus(allocated)} of ${gpus(total)} allocated`;
}

export function gpusAllocatedOf(allocated: number, total: number): string {
  return `${gpus(allocated)} of ${gpus(total)} GPUs allocated`;
}

export function mapText(model: string, allocated: number, total: number, nodes: number): string {
  return `${modelName(model)}: ${allocatedOf(allocated, total)} on ${nodes} nodes`;
}

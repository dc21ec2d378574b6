/** Texts of the scheduler page. */
import { count, milliseconds } from "./numbers.ts";
import { actionName } from "./ui.ts";

export const SCHEDULER = {
  title: "Scheduler",
  note: "What the latest sessions decided, and how long they took",
  chartTitle: "Time per session",
  chartNote: "allocate, consolidation, reclaim, preempt, and the rest",
  table: "Sessions",
  last: (sessions: number) => `The last ${count(sessions)} sessions. All counts are pods.`,
  emptyTitle: "No session yet",
  empty: "A session starts as soon as a workload arrives.",
  failed: "failed",
  actions: (actions: readonly { readonly name: string; readonly ms: number }[]) =>
    actions.map(({ name, ms }) => `${actionName(name)} ${milliseconds(ms)}`).join(" · "),
} as const;

export const SESSION_COLUMNS = {
  id: "Session",
  time: "Started",
  shard: "Shard",
  duration: "Duration",
  actions: "Actions",
  nodes: "Nodes",
  pending: "Pending",
  bound: "Bound",
  nominated: "Nominated",
  evicted: "Evicted",
  notPlaced: "Not placed",
} as const;

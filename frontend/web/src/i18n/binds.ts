/** Texts about failed binds: of the pods of a workload, and of nodes that get no new pods for a while. */
import { clockTime, plural } from "./numbers.ts";

export const FAILED_BINDS = {
  title: "Failed binds",
  columns: ["Pod", "Failures", "Last node", "Next attempt"],
  nextAttempt: (iso: string) => `after ${clockTime(iso)}`,
  due: "in the next cycle",
} as const;

export const RESTING = {
  title: "Nodes that get no new pods after failed binds",
  node: (name: string, until: string, pods: number) =>
    `${name} until ${clockTime(until)}: ${plural(pods, "pod")} failed there and nowhere else.`,
  badge: "resting",
  badgeTitle: (until: string) => `No new pods until ${clockTime(until)}, after failed binds`,
  button: "Retry…",
  buttonLabel: (name: string) => `Retry binds on ${name}`,
  submit: "Retry",
  text: "The failed binds of these pods are forgotten: the next cycle tries them again, and the node gets pods at once.",
  done: "The next cycle tries again",
  forbidden: "You may not act on workloads. Ask an administrator for the role editor.",
  stale: "The data shown is out of date. Actions are possible again once it is current.",
} as const;

/** The page of bind requests: decisions of the scheduler that the binder carries out. */
export const BINDS = {
  note: "Pods that were given a node: what the binder is carrying out, and what has failed",
  table: "Bind requests",
  count: (rows: number, isComplete: boolean) =>
    isComplete ? plural(rows, "bind request") : `the first ${plural(rows, "bind request")}`,
  columns: ["Pod", "Node", "State", "Failures", "GPU groups", "Age"],
  state: "State",
  filters: {
    open: "not done yet",
    Pending: "being carried out",
    Failed: "failed",
    Succeeded: "done",
    all: "all",
  },
  phases: { Pending: "being carried out", Succeeded: "done", Failed: "failed" } as Readonly<
    Record<string, string>
  >,
  emptyTitle: "Nothing is being bound",
  empty: "No decision is being carried out now, and none has failed.",
  noMatchTitle: "No bind request is in this state",
  noMatch: "Choose another state to see more.",
  request: (pod: string) => `Bind request of ${pod}`,
  close: "Close",
  missingTitle: "This bind request is gone",
  missing: "It was carried out or deleted meanwhile. The pod's workload says where it is now.",
  node: "Node",
  failures: "Failures",
  resourceType: "Kind of resource",
  groups: "GPU groups",
  created: "Created",
  reason: "Why it failed",
} as const;

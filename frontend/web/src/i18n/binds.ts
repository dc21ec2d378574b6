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

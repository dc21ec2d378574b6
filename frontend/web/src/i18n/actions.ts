/** Texts of the actions on a workload. */
import type { WorkloadAction } from "../model/rows.ts";
import { dateTime } from "./numbers.ts";

type ActionText = {
  readonly button: string;
  readonly title: (workload: string) => string;
  readonly text: string;
  readonly done: string;
};

export const ACTION_TEXTS: Record<WorkloadAction, ActionText> = {
  hold: {
    button: "Hold…",
    title: (workload) => `Hold ${workload}`,
    text: "Pods that wait do not start until the hold ends. Running pods go on.",
    done: "On hold",
  },
  release: {
    button: "Release…",
    title: (workload) => `Release ${workload}`,
    text: "Its waiting pods may start from the next cycle on.",
    done: "Released",
  },
  requeue: {
    button: "Requeue…",
    title: (workload) => `Requeue ${workload}`,
    text: "Its running pods are evicted, and what their owner creates anew waits in the queue. Disruption budgets are kept to, minimum runtimes are not.",
    done: "Requeued",
  },
  "retry-bind": {
    button: "Retry bind…",
    title: (workload) => `Retry the bind of ${workload}`,
    text: "Its failed binds are forgotten, and the next cycle tries them again.",
    done: "The next cycle tries again",
  },
};

export const WORKLOAD_ACTIONS = {
  label: "Actions",
  reason: "Reason",
  reasonHint: "Shown with the workload and recorded in the audit log.",
  duration: "How long",
  durations: [
    { value: "0", label: "Until it is released" },
    { value: "1", label: "1 hour" },
    { value: "8", label: "8 hours" },
    { value: "24", label: "1 day" },
    { value: "168", label: "1 week" },
  ],
  forbidden: (queue: string) =>
    `You may not act on workloads of queue ${queue}. Ask an administrator for the role editor.`,
  stale: "The data shown is out of date. Actions are possible again once it is current.",
  held: (reason: string, until: string | null) =>
    [
      until === null ? "On hold until it is released" : `On hold until ${dateTime(until)}`,
      reason === "" ? "." : `: ${reason}`,
    ].join(""),
} as const;

/** Texts of the page of one queue. */
import type { Resource } from "../model/rows.ts";
import { amount, count, plural, UNIT } from "./numbers.ts";

export const QUEUE_PAGE = {
  all: "All queues",
  edit: "Edit",
  tabList: "Queue",
  tabs: {
    summary: "Summary",
    share: "Share",
    workloads: "Workloads",
    history: "History",
    access: "Access",
    yaml: "YAML",
  },
  missingTitle: "This queue was not found",
  missing: "It may have been deleted. {link}",
  parent: "Parent",
  topLevel: "none (top-level queue)",
  children: "Queues below it",
  manager: "Managed by",
  created: "Created",
  minRuntimes: "Minimum runtime (preempt, reclaim)",
  maxRunTime: "Maximum run time, wait after it",
  amounts: "Allocated against its bounds",
  amountsNote: "of everything below it",
  resources: [
    "Resource",
    "Use",
    "Allocated",
    "Requested",
    "Quota",
    "Limit",
    "Weight",
    "Fair share",
  ],
  reasons: "Why its workloads wait",
  reasonColumns: ["Reason", "Workloads"] as const,
  noneWaits: "No workload of this queue waits",
  largest: "Largest workloads",
  ahead: "Next in the order",
  order: "Whole order",
  place: (position: number) => `${count(position)}.`,
  workloadsCount: (shown: number) => plural(shown, "workload"),
  noWorkloads: "No workloads",
  noWorkloadsText: "Nothing names this queue or one below it.",
} as const;

export const SHARE = {
  title: "Fair share",
  note: (pool: number, resource: Resource, parent: string | null) =>
    `of ${amount(resource, pool)} ${UNIT[resource]} that ${
      parent === null ? "the top-level queues" : `the children of ${parent}`
    } divide`,
  gate: "The fair share decides who may take room back from whom. It is not a limit: a queue may use free resources beyond it, up to its limit.",
  wouldGet: (value: string, unit: string) =>
    `If the queue requested everything, it would get ${value} ${unit}.`,
  unknown: "not computed yet",
  table: "Steps of the division",
  columns: ["Step", "Amount", "Sum", "Chart"],
  total: "Fair share",
  steps: {
    quota: "Quota, as far as it is requested",
    weight: "Part of what is left, by weight among queues of its priority",
    demand: "Not requested",
    limit: "Cut off by the limit",
    rest: "Whole units, and what siblings left over",
    other: "Past use, and node pools that are divided apart",
  },
  siblings: "Siblings",
  siblingsNote: "A higher priority is served first, after all quotas",
  siblingColumns: ["Queue", "Priority", "Weight", "Requested", "Fair share"],
} as const;

export const ACCESS = {
  title: "Who may edit this queue",
  note: "Roles of this queue, of the queues above it, and of the whole cluster",
  columns: ["User", "Role", "Granted for", "May edit this queue"],
  everywhere: "the whole cluster",
  yes: "yes",
  no: "only queues below it",
  none: "no",
  manage: "Manage users and roles",
  roles: { admin: "Admin", editor: "Editor", viewer: "Viewer" } as Readonly<Record<string, string>>,
} as const;

export const YAML = {
  title: "YAML",
  text: "Text of the object",
  note: "as the cluster has it now",
  copy: "Copy",
  copied: "Copied",
  download: "Download",
} as const;

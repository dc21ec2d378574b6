/** The words of the field, each in one or two sentences; shown in place and on the page Help. */
export const GLOSSARY = {
  queue: {
    name: "Queue",
    text: "Work waits in a queue and counts against it. Queues form a tree; only those without children run work.",
  },
  workload: {
    name: "Workload",
    text: "The pods that are scheduled together: a job, a service, a single pod. In the cluster it is a PodGroup.",
  },
  quota: {
    name: "Quota",
    text: "What a queue can count on. What it does not use is lent to others, and taken back when it is needed.",
  },
  limit: {
    name: "Limit",
    text: "The most that a queue may hold. Unset means that nothing may run; unlimited means no bound.",
  },
  weight: {
    name: "Over-quota weight",
    text: "How much of what is left after all quotas a queue gets, in proportion to its siblings of the same priority.",
  },
  priority: {
    name: "Priority of a queue",
    text: "Siblings with a higher priority are served first when what is left after the quotas is divided.",
  },
  share: {
    name: "Fair share",
    text: "What a queue is entitled to now, as far as it requests it: its quota and its part of what is left. Free resources may be used beyond it.",
  },
  allocated: {
    name: "Allocated",
    text: "What the pods of a queue hold on nodes, also those of the queues below it.",
  },
  pending: {
    name: "Pending",
    text: "Workloads of a queue that wait, or of which some pods wait.",
  },
  preemptible: {
    name: "Preemptible",
    text: "Work that may be evicted for others and may hold more than the quota. Non-preemptible work needs quota and stays.",
  },
  gang: {
    name: "Gang",
    text: "A workload that starts only when a minimum of its pods finds room at the same time.",
  },
  reclaim: {
    name: "Reclaim",
    text: "A queue below its share takes room back from queues that hold more than theirs.",
  },
  preempt: {
    name: "Preempt",
    text: "Within one queue, work of a higher priority takes the place of work of a lower one.",
  },
  consolidation: {
    name: "Consolidation",
    text: "Running pods move together, so that free GPUs are joined where a large workload needs them.",
  },
  session: {
    name: "Session",
    text: "One scheduling cycle: the scheduler looks at the cluster, decides, and writes what it decided.",
  },
  topology: {
    name: "Topology",
    text: "The levels of the network, such as block and rack. A workload may have to stay inside one domain of a level.",
  },
} as const;

export const HELP = {
  title: "Help",
  glossary: "Words",
  search: "Search words",
  none: "No word matches.",
  pages: "What each page answers",
  answers: [
    ["/", "Overview", "Is the cluster full, healthy and fair, and what waits?"],
    ["/queues", "Queues", "Who may hold what, and who holds it? Change it here."],
    ["/workloads", "Workloads", "Where is my work, and why does it wait?"],
    ["/nodes", "Nodes", "Which GPUs are free, and who holds the others?"],
    ["/topology", "Topology", "Where does a large gang fit?"],
    ["/scheduler", "Scheduler", "What was decided, and how long did it take?"],
    ["/scheduler/evictions", "Evictions", "Who took room from whom, by which rule?"],
    ["/scheduler/order", "Order", "Whose turn is next?"],
    ["/scheduler/binds", "Binds", "Which decisions are being carried out, and which fail?"],
    ["/simulate", "Simulate", "What would happen if?"],
    ["/changes", "Changes", "Which edits are drafted, wait for approval, or can be undone?"],
    ["/usage", "Usage", "Who used how many GPU-hours, and what did they cost?"],
    ["/audit", "Audit", "Who changed what, when and why?"],
    ["/settings/shards", "Shards", "What does each scheduler do, with which plugins and options?"],
  ] as const,
} as const;

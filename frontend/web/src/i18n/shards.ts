/** Texts of the shards: what each scheduler does, and the forms that change it. */
import { plural } from "./numbers.ts";

export const SHARDS = {
  title: "Shards",
  note: "Each shard is one scheduler for its part of the nodes",
  columns: ["Shard", "Nodes", "State"],
  table: "Shards",
  create: "New shard",
  withoutPool: "those without a pool label",
  pool: (value: string) => `pool ${value}`,
  ready: "in use",
  byDefault: "runs on its defaults",
  refused: "settings refused",
  waiting: "not ready yet",
  missingTitle: (name: string) => `There is no shard “${name}”`,
  missing: "It may have been deleted. Choose another one in the list.",
  adminsOnly: "Only administrators change shards.",
  stale: "The data shown is out of date. Shards can be changed as soon as it is current again.",
  problemTitle: "The scheduler refuses these settings and keeps its old ones",
  withoutObject:
    "There is no object for this shard: it runs on its defaults. The first change that you save creates it.",
} as const;

export const SHARD = {
  general: "How nodes are chosen",
  gpuStrategy: "Pods with GPUs",
  cpuStrategy: "Pods without GPUs",
  strategies: {
    binpack: "binpack: fill nodes up",
    spread: "spread: take the emptiest node",
    fragmentation: "fragmentation: leave GPUs that other pods can use",
  },
  kValue: "Weight of past use",
  kValueHint:
    "How much past use lowers a share beyond the quota. It has an effect only where the use is known.",
  nodes: "Nodes",
  state: "State",
  created: "Created",
  actions: "Actions",
  actionsNote: "in the order in which a session runs them",
  actionColumns: ["Action", "What it does", "Runs", "Workloads per queue"],
  runs: (name: string) => `${name} runs`,
  depth: (name: string) => `Workloads of each queue that ${name} looks at`,
  depthAll: "all",
  plugins: "Plugins",
  pluginsNote: "highest priority first",
  pluginColumns: ["Plugin", "What it does", "Runs", "Priority", "Arguments"],
  options: "Options",
  optionsNote: "the keys of spec.args",
  optionColumns: ["Option", "Value", "Default", "Origin"],
  isDefault: "default",
  isStated: "set here",
  reset: "Reset",
  resetOf: (name: string) => `Reset ${name} to its default`,
  invalid: "Expected a number",
  edited: "edited",
  changes: (fields: number) => plural(fields, "edited setting"),
  review: "Review…",
  discard: "Discard",
  json: "Edit as JSON",
  remove: "Delete shard",
} as const;

export const SHARD_REVIEW = {
  title: (name: string) => `Change the shard ${name}`,
  diff: "What changes",
  asking: "Asking the server what would change…",
  unchanged: "The shard has these settings already.",
  effect:
    "The scheduler of this shard takes the settings over with its next session; nothing is restarted.",
  warnings: "Warnings",
  refused: "The scheduler would refuse this",
  movedTitle: "Somebody else has changed the shard since",
  moved:
    "The table shows what your change does to its present settings. Look at it, then save again.",
  reason: "Reason",
  reasonHint: "Recorded in the audit log.",
  save: "Save",
  saved: "Saved",
  savedText: (name: string) => `The shard ${name} has the new settings.`,
  undone: "Undone",
  undoneText: (name: string) => `The shard ${name} has the settings from before.`,
  undoFailed: "The undo failed",
} as const;

export const SHARD_JSON = {
  title: (name: string) => `Settings of the shard ${name}`,
  text: "The whole spec of the SchedulingShard, with the fields that this page does not show.",
  label: "Spec",
  invalid: "Expected one JSON object",
  review: "Review…",
} as const;

export const NEW_SHARD = {
  title: "New shard",
  text: "A shard gets a scheduler of its own. It has the nodes and queues that carry its pool label; label them afterwards.",
  name: "Name",
  nameHint: "Lower case letters, digits and dashes.",
  pool: "Value of the pool label",
  poolHint: "Nodes, queues and pods with kai.scheduler/node-pool=<this value> belong to the shard.",
  submit: "Create shard",
  created: "Shard created",
  createdText: (name: string) => `The scheduler of ${name} starts now.`,
} as const;

export const DELETE_SHARD = {
  title: (name: string) => `Delete the shard ${name}?`,
  text: "Its scheduler ends. What runs goes on running; nobody schedules its nodes until they lose the label or a shard comes back.",
  textDefault: "The shard goes on with its defaults: its settings are lost.",
  typed: (name: string) => `Type ${name} to confirm`,
  submit: "Delete shard",
  deleted: "Shard deleted",
} as const;

/** What an action does, in a few words; an action that is not listed is shown without. */
export const ACTION_TEXTS: Readonly<Record<string, string>> = {
  allocate: "Places waiting work on free resources.",
  consolidation: "Moves running pods together, so that a large workload finds joined room.",
  reclaim: "Takes room back for queues below their share, from queues above theirs.",
  preempt: "Gives work of a higher priority the room of lower work in the same queue.",
  stalegangeviction: "Ends gangs that have run below their minimum for too long.",
};

export const PLUGIN_TEXTS: Readonly<Record<string, string>> = {
  predicates: "Checks whether a pod fits a node: selectors, taints, affinity, volumes.",
  proportion: "Divides the cluster into fair shares and decides who may take room back.",
  priority: "Orders the work of a queue by its priority.",
  userfairness: "Takes turns between the users of a queue that asks for it.",
  nodeavailability: "Prefers nodes where a pod fits now to nodes that pods are leaving.",
  resourcetype: "Keeps work without GPUs away from nodes with GPUs.",
  podaffinity: "Scores the preferred pod affinities.",
  elastic: "Serves work below its minimum before work that grows beyond it.",
  kubeflow: "Places the masters of Kubeflow jobs first.",
  ray: "Places the heads of Ray clusters first.",
  subgrouporder: "Orders the subgroups of a workload.",
  taskorder: "Orders the pods of a workload.",
  nominatednode: "Keeps a pod on the node that was chosen for it before.",
  dynamicresources: "Allocates devices by resource claims.",
  gpumodels: "Keeps queues within their bounds of each GPU model.",
  minruntime: "Protects work until its minimum run time is over.",
  topology: "Places gangs within the domains of a topology.",
  snapshot: "Answers requests for a snapshot of the cluster.",
  "sg-nodelocalgreedy": "Looks for victims node by node.",
  "sg-multinodegang": "Looks for victims over several nodes.",
  gpupack: "Fills up GPUs that are shared already.",
  gpuspread: "Spreads fractions over the GPUs of a node.",
  nodeplacement: "Scores nodes by the placement strategy.",
  gpusharingorder: "Prefers GPUs that are shared already.",
  backfill: "Keeps room for large work, and lets short work use it meanwhile.",
  numa: "Prefers nodes where the GPUs of a pod are close to its CPUs.",
  reflectjoborder: "Shows the order of the workloads on a page of its own.",
};

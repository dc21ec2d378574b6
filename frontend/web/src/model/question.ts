/** The form of the simulator, and the question for the server that it makes. */
import type { DraftEdit } from "./draft.ts";
import type { NewWorkload, Question } from "./rows.ts";

/** One added workload as typed; numbers are texts until the question is made. */
export type WorkloadEntry = {
  readonly key: number;
  readonly queue: string;
  readonly pods: string;
  readonly gpu: string;
  readonly priorityClass: string;
};
export type SimulatorEntries = {
  readonly cycles: string;
  readonly workloads: readonly WorkloadEntry[];
  /** How many nodes are added, and the node they are copies of. */
  readonly nodeCount: string;
  readonly nodeLike: string;
  readonly removedNodes: readonly string[];
};

const MAX_CYCLES = 50;
const MAX_PODS = 5_000;
const MAX_NODES = 2_000;

export const START: SimulatorEntries = {
  cycles: "3",
  workloads: [],
  nodeCount: "1",
  nodeLike: "",
  removedNodes: [],
};

/** Return the question, or null while a field cannot be read or nothing is asked. */
export function questionOf(
  entries: SimulatorEntries,
  edits: readonly DraftEdit[],
): Question | null {
  const cycles = whole(entries.cycles, 1, MAX_CYCLES);
  const added = entries.workloads.map(newWorkload);
  const nodeCount = entries.nodeLike === "" ? 0 : whole(entries.nodeCount, 1, MAX_NODES);
  if (cycles === null || nodeCount === null) return null;
  const add = added.filter((workload) => workload !== null);
  const isEmpty = add.length + edits.length + nodeCount + entries.removedNodes.length === 0;
  if (add.length < added.length || isEmpty) return null;
  const nodes = {
    ...(nodeCount > 0 ? { add: [{ count: nodeCount, like: entries.nodeLike }] } : {}),
    ...(entries.removedNodes.length > 0 ? { remove: entries.removedNodes } : {}),
  };
  return {
    cycles,
    // The schema does not say that null unsets an amount, as it does in a PATCH.
    ...(edits.length > 0 ? { queues: edits as NonNullable<Question["queues"]> } : {}),
    ...(add.length > 0 ? { workloads: { add } } : {}),
    ...(Object.keys(nodes).length > 0 ? { nodes } : {}),
  };
}

/** Return the entries that would ask the same about workloads and nodes. */
export function entriesOfQuestion({ cycles, workloads, nodes }: Question): SimulatorEntries {
  const copies = nodes?.add?.[0];
  return {
    cycles: String(cycles ?? START.cycles),
    workloads: (workloads?.add ?? []).map((workload, key) => ({
      key,
      queue: workload.queue,
      pods: String(workload.pods ?? 1),
      gpu: String(workload.gpu ?? 0),
      priorityClass: workload.priorityClass ?? "",
    })),
    nodeCount: String(copies?.count ?? START.nodeCount),
    nodeLike: copies?.like ?? "",
    removedNodes: nodes?.remove ?? [],
  };
}

function newWorkload(entry: WorkloadEntry): NewWorkload | null {
  const pods = whole(entry.pods, 1, MAX_PODS);
  const gpu = /^\d*\.?\d+$/.test(entry.gpu.trim()) ? Number(entry.gpu) : null;
  if (entry.queue === "" || pods === null || gpu === null) return null;
  return {
    name: `simulated-${entry.key + 1}`,
    queue: entry.queue,
    pods,
    // A gang: a distributed job starts whole or not at all.
    minMember: pods,
    gpu,
    ...(entry.priorityClass === "" ? {} : { priorityClass: entry.priorityClass }),
  };
}

function whole(text: string, least: number, most: number): number | null {
  if (!/^\d+$/.test(text.trim())) return null;
  const number = Number(text);
  return number >= least && number <= most ? number : null;
}

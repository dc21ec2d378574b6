/** Texts of the preview: what an edit would start, evict and block. */
import { count, gpuCount, plural } from "./numbers.ts";
import { reasonText } from "./reasons.ts";

export const PREVIEW = {
  title: "Preview",
  run: "Preview",
  running: "Asking the scheduler what would happen…",
  unavailable: "The preview is not available",
  unknownError: "The simulation failed.",
  tooLong: "The simulation has not finished in time. Is the process simulations running?",
  verdicts: {
    "no-effect": "Nothing changes for any workload.",
    safe: "No pod is evicted because of this change.",
    evicts: "This change evicts pods that would otherwise stay.",
    invalid: "The change cannot be made.",
  },
  stays: (queue: string, quota: number, allocated: number, share: number) =>
    `The work of ${queue} stays: the ${gpuCount(allocated)} that it holds are above the new quota of ${gpuCount(quota)}, but within its fair share of ${gpuCount(share)}. Lower its weight or priority, or set a limit, to take room from it.`,
  staysForNow: (queue: string, quota: number, allocated: number, share: number) =>
    `The work of ${queue} stays for now: it holds ${gpuCount(allocated)}, more than the new quota of ${gpuCount(quota)} and its fair share of ${gpuCount(share)}, but no waiting work is entitled to that room. It may be evicted as soon as some is.`,
  basis: (cycles: number, workloads: number) =>
    `${plural(cycles, "scheduling cycle")} on a copy of the cluster as it is now, with ${plural(workloads, "workload")}.`,
  evicted: (pods: number, gpus: number) => `Evicted: ${plural(pods, "pod")}, ${gpuCount(gpus)}`,
  started: (pods: number, gpus: number) => `Started: ${plural(pods, "pod")}, ${gpuCount(gpus)}`,
  blocked: (workloads: number) => `Waiting for another reason: ${plural(workloads, "workload")}`,
  podsOf: (queue: string, pods: number, gpus: number) =>
    `${queue} · ${plural(pods, "pod")} · ${gpuCount(gpus)}`,
  rule: "By which rule",
  evictor: (workload: string) => `for ${workload}`,
  anyway: "would happen without this change too",
  reasons: (before: string | null, after: string) =>
    before === null ? reasonText(after) : `${reasonText(before)} → ${reasonText(after)}`,
  more: (rows: number) => `and ${count(rows)} more`,
  confirmTitle: "Some workloads lose their place",
  confirm: "Save and evict",
  confirmWithout: "Save without a preview",
  back: "Keep editing",
} as const;

/** The details of a simulated workload: its pods, and why it waits. */
import type { Explanation, PodRow, Workload } from "../src/model/rows.ts";

export function podsOf(workload: Workload): PodRow[] {
  return Array.from({ length: workload.pods }, (_, index) => ({
    name: `${workload.owner}-${index}`,
    state: workload.state === "running" ? "running" : "pending",
    node: workload.nodes[index % Math.max(1, workload.nodes.length)] ?? "",
    gpu: workload.gpu / workload.pods,
    devices: workload.state === "running" ? [index] : [],
    reason: workload.state === "pending" ? "DeviceShortage" : "",
    message: workload.reasonText,
    createdAt: workload.createdAt,
    startedAt: workload.startedAt,
  }));
}

export function explanationOf(workload: Workload): Explanation {
  const blocked = workload.state === "pending";
  const stages = [
    "managed",
    "grouped",
    "queue",
    "quota",
    "limit",
    "order",
    "nodes",
    "bind",
    "started",
  ];
  const stuck = stages.indexOf(
    { OverLimit: "limit", NonPreemptibleOverQuota: "quota", GroupIncomplete: "grouped" }[
      workload.reason ?? ""
    ] ?? "nodes",
  );
  return {
    reason: workload.reason ?? "",
    text: workload.reasonText ?? "",
    evidence: blocked
      ? [
          {
            name: "GPUs",
            asked: String(workload.gpu),
            available: "2",
            where: "largest free block, node a100-03",
          },
          {
            name: "Queue limit",
            asked: String(workload.gpu),
            available: "6",
            where: workload.queue,
          },
        ]
      : [],
    since: workload.createdAt,
    others: [],
    order: blocked ? { position: 3, of: 12, aheadInQueue: 1, ahead: [] } : null,
    stages: stages.map((stage, index) => ({
      stage,
      state: !blocked || index < stuck ? "ok" : index === stuck ? "blocked" : "waiting",
      text: "",
    })),
  };
}

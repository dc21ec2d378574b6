import { describe, expect, it } from "vitest";
import { entriesOfQuestion, questionOf, START } from "./question.ts";

const WORKLOAD = { key: 0, queue: "vision", pods: "4", gpu: "8", priorityClass: "train" };

describe("questionOf", () => {
  it("asks about added workloads, copies of a node and removed nodes", () => {
    const entries = {
      ...START,
      cycles: "5",
      workloads: [WORKLOAD],
      nodeCount: "2",
      nodeLike: "h100-1",
      removedNodes: ["t4-1"],
    };
    const question = questionOf(entries, [{ name: "a", action: "update", edit: { priority: 1 } }]);
    expect(question).toEqual({
      cycles: 5,
      queues: [{ name: "a", action: "update", edit: { priority: 1 } }],
      workloads: {
        add: [
          {
            name: "simulated-1",
            queue: "vision",
            pods: 4,
            minMember: 4,
            gpu: 8,
            priorityClass: "train",
          },
        ],
      },
      nodes: { add: [{ count: 2, like: "h100-1" }], remove: ["t4-1"] },
    });
    expect(question && entriesOfQuestion(question)).toEqual(entries);
  });

  it.each([
    ["nothing is asked", START],
    ["a workload has no queue", { ...START, workloads: [{ ...WORKLOAD, queue: "" }] }],
    ["a workload has no pods", { ...START, workloads: [{ ...WORKLOAD, pods: "0" }] }],
    ["a number of GPUs is unreadable", { ...START, workloads: [{ ...WORKLOAD, gpu: "8x" }] }],
    ["there are too many cycles", { ...START, cycles: "51", workloads: [WORKLOAD] }],
  ])("is null while %s", (_, entries) => {
    expect(questionOf(entries, [])).toBeNull();
  });
});

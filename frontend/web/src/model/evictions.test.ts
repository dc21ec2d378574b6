import { describe, expect, it } from "vitest";
import { type EvictionSum, matrixOf } from "./evictions.ts";

function evictionSum(
  evictorQueue: string,
  queue: string,
  gpu: number,
  rule = "reclaim",
): EvictionSum {
  return { evictorQueue, queue, gpu, rule, evictions: 1, pods: 2 };
}

describe("matrixOf", () => {
  const sums = [
    evictionSum("a", "b", 4),
    evictionSum("a", "b", 1, "preempt"),
    evictionSum("c", "b", 2),
    evictionSum("a", "a", 9),
  ];

  it("adds up the rules of each pair of queues, and sorts queues by their GPUs, most first", () => {
    const matrix = matrixOf(sums, "", 10);
    expect(matrix.evictors).toEqual(["a", "c"]);
    expect(matrix.victims).toEqual(["a", "b"]);
    expect(matrix.cell("a", "b")).toEqual({ gpu: 5, evictions: 2, pods: 4 });
    expect(matrix.cell("c", "a")).toBeUndefined();
    expect(matrix.largest).toBe(9);
    expect(matrix.hidden).toEqual({ queues: 0, gpu: 0 });
  });

  it("leaves out the evictions of other rules", () => {
    const matrix = matrixOf(sums, "preempt", 10);
    expect([matrix.evictors, matrix.victims, matrix.largest]).toEqual([["a"], ["b"], 1]);
  });

  it("counts the queues and GPUs that it leaves out beyond the maximum", () => {
    const matrix = matrixOf(sums, "", 1);
    expect([matrix.evictors, matrix.victims]).toEqual([["a"], ["a"]]);
    expect(matrix.hidden).toEqual({ queues: 2, gpu: 7 });
  });
});

import { describe, expect, it } from "vitest";
import { matrixOf, type Sum } from "./evictions.ts";

function sum(evictorQueue: string, queue: string, gpu: number, rule = "reclaim"): Sum {
  return { evictorQueue, queue, gpu, rule, evictions: 1, pods: 2 };
}

describe("matrixOf", () => {
  const sums = [sum("a", "b", 4), sum("a", "b", 1, "preempt"), sum("c", "b", 2), sum("a", "a", 9)];

  it("sums the rules of a pair, and puts the largest queues first", () => {
    const matrix = matrixOf(sums, "", 10);
    expect(matrix.evictors).toEqual(["a", "c"]);
    expect(matrix.victims).toEqual(["a", "b"]);
    expect(matrix.cell("a", "b")).toEqual({ gpu: 5, evictions: 2, pods: 4 });
    expect(matrix.cell("c", "a")).toBeUndefined();
    expect(matrix.largest).toBe(9);
    expect(matrix.hidden).toEqual({ queues: 0, gpu: 0 });
  });

  it("shows one rule alone", () => {
    const matrix = matrixOf(sums, "preempt", 10);
    expect([matrix.evictors, matrix.victims, matrix.largest]).toEqual([["a"], ["b"], 1]);
  });

  it("counts what it leaves out", () => {
    const matrix = matrixOf(sums, "", 1);
    expect([matrix.evictors, matrix.victims]).toEqual([["a"], ["a"]]);
    expect(matrix.hidden).toEqual({ queues: 2, gpu: 7 });
  });
});

import { describe, expect, it } from "vitest";
import { queueRow } from "../testing/rows.ts";
import { borrowings, fairGroups } from "./fairness.ts";

function queue(name: string, allocated: number, share: number, requested: number, parent = "dept") {
  const gpus = (gpu: number) => ({ gpu, cpuMilli: 0, memoryBytes: 0 });
  return queueRow({
    name,
    parent,
    allocated: gpus(allocated),
    share: gpus(share),
    requested: gpus(requested),
  });
}

describe("fairGroups", () => {
  it("puts the most starved sibling first and leaves idle queues out", () => {
    const queues = [queue("a", 12, 8, 12), queue("b", 2, 8, 20), queue("idle", 0, 0, 0)];
    const [group] = fairGroups(queues, "gpu");
    expect(group?.parent).toBe("dept");
    expect(
      group?.rows.map(({ queue: { name }, ratio, missing }) => [name, ratio, missing]),
    ).toEqual([
      ["b", 0.25, 6],
      ["a", 1.5, -4],
    ]);
  });

  it("misses nothing where nothing is requested, and has no ratio without a share", () => {
    const [group] = fairGroups([queue("a", 2, 8, 2), queue("b", 3, 0, 3)], "gpu");
    expect(group?.rows.map(({ ratio, missing }) => [ratio, missing])).toEqual([
      [0.25, 0],
      [null, -3],
    ]);
  });
});

it("matches queues below their share with queues above theirs", () => {
  const queues = [queue("a", 12, 8, 12), queue("b", 2, 8, 20), queue("c", 9, 8, 9)];
  const [group] = fairGroups(queues, "gpu");
  expect(group && borrowings(group)).toEqual([
    { from: "a", to: "b", amount: 4 },
    { from: "c", to: "b", amount: 1 },
  ]);
});

import { describe, expect, it } from "vitest";
import { nodeRow } from "../../testing/rows.ts";
import { layOut, nextCell } from "./lines.ts";

const nodes = [
  nodeRow("n10", 2),
  nodeRow("n2", 2, { gpuAllocated: 1.5 }),
  nodeRow("cpu-1", 0),
  nodeRow("n1", 2),
];

describe("layOut", () => {
  it("puts a heading over each group and so many tiles to a line, nodes without GPUs last", () => {
    const lines = layOut(nodes, "model", 2).map((line) =>
      line.kind === "group"
        ? `${line.title}: ${line.note}`
        : line.nodes.map((node) => node.name).join(" "),
    );
    expect(lines).toEqual([
      "A100: 3 nodes, 1.5 of 6 GPUs allocated",
      "n1 n2",
      "n10",
      "Without GPUs: 1 node",
      "cpu-1",
    ]);
  });
});

describe("nextCell", () => {
  const order = ["n1", "n2", "n10"].map((name) => nodeRow(name, 2));

  it.each([
    ["ArrowRight", { node: "n1", index: 0 }, { node: "n1", index: 1 }],
    ["ArrowRight", { node: "n1", index: 1 }, { node: "n2", index: 0 }],
    ["ArrowRight", { node: "n10", index: 1 }, null],
    ["ArrowLeft", { node: "n2", index: 0 }, { node: "n1", index: 1 }],
    ["ArrowDown", { node: "n1", index: 1 }, { node: "n10", index: 1 }],
    ["ArrowUp", { node: "n1", index: 1 }, null],
    ["End", { node: "n2", index: 0 }, { node: "n2", index: 1 }],
    ["x", { node: "n2", index: 0 }, null],
  ])("%s from %j leads to %j", (key, from, to) => {
    expect(nextCell(order, 2, from, key)).toEqual(to);
  });

  it("steps over a node that has no device", () => {
    const mixed = [nodeRow("a", 1), nodeRow("cpu", 0), nodeRow("b", 1)];
    expect(nextCell(mixed, 3, { node: "a", index: 0 }, "ArrowRight")).toEqual({
      node: "b",
      index: 0,
    });
    expect(nextCell(mixed, 3, { node: "b", index: 0 }, "ArrowLeft")).toEqual({
      node: "a",
      index: 0,
    });
  });
});

import { describe, expect, it } from "vitest";
import { queueRow } from "../testing/rows.ts";
import { ancestors, buildTree, isLeaf } from "./tree.ts";

function queues(...pairs: [name: string, parent: string | null][]) {
  return new Map(pairs.map(([name, parent]) => [name, queueRow({ name, parent })]));
}

const rows = (...pairs: [name: string, parent: string | null][]) => [...queues(...pairs).values()];

describe("buildTree", () => {
  it("sorts siblings by name, numbers as numbers", () => {
    const tree = buildTree(
      rows(["team-10", null], ["team-2", null], ["b", "team-2"], ["a", "team-2"]),
    );
    expect(tree.roots).toEqual(["team-2", "team-10"]);
    expect(tree.children.get("team-2")).toEqual(["a", "b"]);
    expect([tree.level.get("team-2"), tree.level.get("a")]).toEqual([1, 2]);
    expect([isLeaf(tree, "a"), isLeaf(tree, "team-2")]).toEqual([true, false]);
  });

  it("puts orphans on top", () => {
    expect(buildTree(rows(["a", null], ["z", "gone"])).roots).toEqual(["z", "a"]);
  });

  it("shows every member of a cycle exactly once", () => {
    const tree = buildTree(rows(["a", "c"], ["b", "a"], ["c", "b"], ["self", "self"]));
    expect(tree.roots).toEqual(["a", "self"]);
    expect([...tree.level]).toEqual([
      ["a", 1],
      ["b", 2],
      ["c", 3],
      ["self", 1],
    ]);
    expect(tree.children.get("c")).toEqual([]);
  });
});

describe("ancestors", () => {
  it("lists them nearest first and stops in a cycle", () => {
    expect(ancestors(queues(["a", null], ["b", "a"], ["c", "b"]), "c")).toEqual(["b", "a"]);
    expect(ancestors(queues(["a", "b"], ["b", "a"]), "a")).toEqual(["b", "a"]);
  });
});

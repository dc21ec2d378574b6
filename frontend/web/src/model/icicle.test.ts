import { expect, it } from "vitest";
import { besideSlice, slicesOf } from "./icicle.ts";
import { buildTree } from "./tree.ts";

const tree = buildTree([
  { name: "a", parent: null },
  { name: "b", parent: null },
  { name: "a1", parent: "a" },
  { name: "a2", parent: "a" },
  { name: "idle", parent: "b" },
]);
const AMOUNTS: Record<string, number> = { a: 6, b: 2, a1: 1, a2: 3 };
const slices = slicesOf(tree, (name) => AMOUNTS[name] ?? 0);

it("gives each queue the part of its parent that its amount has among its siblings", () => {
  expect(slices.map(({ name, depth, left, width }) => [name, depth, left, width])).toEqual([
    ["a", 0, 0, 0.75],
    ["a2", 1, 0, 0.5625],
    ["a1", 1, 0.5625, 0.1875],
    ["b", 0, 0.75, 0.25],
  ]);
});

it("walks to siblings, parent and first child by arrow keys", () => {
  const [a, a2, a1, b] = slices;
  if (!a || !a2 || !a1 || !b) throw new Error("expected four slices");
  const to = (from: typeof a, key: string) => besideSlice(slices, from, key)?.name ?? null;
  expect([
    to(a, "ArrowRight"),
    to(a, "ArrowDown"),
    to(a1, "ArrowUp"),
    to(a2, "ArrowRight"),
  ]).toEqual(["b", "a2", "a", "a1"]);
  expect([to(b, "ArrowDown"), to(a, "ArrowUp"), to(a, "Enter")]).toEqual([null, null, null]);
});

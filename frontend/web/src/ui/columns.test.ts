import { describe, expect, it } from "vitest";
import { type Column, shownColumns, sortRows } from "./columns.ts";

type Item = { name: string; gpu: number };
const columns: readonly Column<Item>[] = [
  { key: "name", label: "", width: "", render: () => null, sortBy: (row) => row.name },
  { key: "gpu", label: "", width: "", render: () => null, sortBy: (row) => row.gpu },
];
const rows: Item[] = [
  { name: "n10", gpu: 1 },
  { name: "n2", gpu: 8 },
  { name: "n1", gpu: 1 },
];
const names = (sort: string) => sortRows(rows, columns, sort).map((row) => row.name);

describe("sortRows", () => {
  it.each([
    ["name", ["n1", "n2", "n10"]],
    ["-name", ["n10", "n2", "n1"]],
    ["gpu", ["n10", "n1", "n2"]],
    ["-gpu", ["n2", "n10", "n1"]],
    ["unknown", ["n10", "n2", "n1"]],
  ])("%s", (sort, order) => expect(names(sort)).toEqual(order));
});

it("hides chosen columns, and never the first", () => {
  const keys = (hidden: readonly string[]) => shownColumns(columns, hidden).map(({ key }) => key);
  expect([keys([]), keys(["gpu"]), keys(["name", "gpu"])]).toEqual([
    ["name", "gpu"],
    ["name"],
    ["name"],
  ]);
});

import { describe, expect, it } from "vitest";
import { queueRow } from "../testing/rows.ts";
import { type ChildTable, childEdits, childTable, quotaSum, scaled, shared } from "./children.ts";

const ROWS = [
  queueRow({ name: "a", quota: { gpu: 6 }, limit: { gpu: 12 }, weight: { gpu: 1 } }),
  queueRow({ name: "b", quota: { gpu: 3 }, limit: { gpu: "unlimited" }, weight: { gpu: 2 } }),
  queueRow({ name: "c", quota: {}, limit: {}, weight: { gpu: 1 } }),
];
const quotas = (table: ChildTable) => [...table.values()].map(({ quota }) => quota);
const typed = (name: string, texts: object) => {
  const table = new Map(childTable(ROWS));
  const before = table.get(name);
  if (before !== undefined) table.set(name, { ...before, ...texts });
  return table;
};

describe("the table of children", () => {
  it("makes no edit of what is unchanged, and one per changed queue", () => {
    expect(childEdits(ROWS, childTable(ROWS))).toEqual([]);
    expect(childEdits(ROWS, typed("a", { quota: "7.5", limit: "" }))).toEqual([
      { name: "a", action: "update", edit: { quota: { gpu: 7.5 }, limit: { gpu: null } } },
    ]);
    expect(childEdits(ROWS, typed("c", { limit: "unlimited" }))).toEqual([
      { name: "c", action: "update", edit: { limit: { gpu: "unlimited" } } },
    ]);
  });

  it.each([{ quota: "-1" }, { quota: "1.2345" }, { weight: "" }, { weight: "unlimited" }])(
    "is not ready with %j",
    (texts) => {
      expect(childEdits(ROWS, typed("a", texts))).toBeNull();
    },
  );

  it("adds the quotas up, where all are numbers or unset", () => {
    expect(quotaSum(childTable(ROWS))).toBe(9);
    expect(quotaSum(typed("a", { quota: "unlimited" }))).toBeNull();
  });

  it("scales quotas to a total, and shares a total evenly, to the last thousandth", () => {
    expect(quotas(scaled(childTable(ROWS), 6))).toEqual(["4", "2", "0"]);
    expect(quotas(shared(childTable(ROWS), 10))).toEqual(["3.333", "3.333", "3.334"]);
  });
});

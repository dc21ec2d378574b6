import { describe, expect, it } from "vitest";
import { queueRow } from "../testing/rows.ts";
import { beside, draftedValue, inlineText, patchBack, readInline } from "./inline.ts";
import type { Pointer } from "./values.ts";

const queue = queueRow({ name: "a" });

describe("readInline", () => {
  it.each<[Pointer, string, unknown]>([
    ["/quota/gpu", "10", { quota: { gpu: 10 } }],
    ["/quota/gpu", "500m", { quota: { gpu: 0.5 } }],
    ["/quota/gpu", "Unlimited", { quota: { gpu: "unlimited" } }],
    ["/quota/gpu", "", { quota: { gpu: null } }],
    ["/quota/gpu", " 8 ", null],
    ["/limit/gpu", "unlimited", null],
    ["/weight/gpu", "2", { weight: { gpu: 2 } }],
    ["/priority", "5", { priority: 5 }],
    ["/priority", "", { priority: null }],
    ["/priority", "1.5", "notWhole"],
    ["/quota/gpu", "x", "notANumber"],
  ])("reads %s %s", (pointer, text, result) => {
    expect(readInline(queue, pointer, text)).toEqual(result);
  });
});

it("starts a cell with the text that reads as its value", () => {
  expect([inlineText("/quota/gpu", 8), inlineText("/limit/gpu", "unlimited")]).toEqual([
    "8",
    "unlimited",
  ]);
});

it.each<[Pointer, number | null, unknown]>([
  ["/quota/gpu", 10, { quota: { gpu: 8 } }],
  ["/quota/gpu", null, { quota: { gpu: 8 } }],
  ["/quota/cpuMilli", 500, { quota: { cpuMilli: null } }],
  ["/priority", 5, { priority: 100 }],
])("takes %s back from the draft", (pointer, drafted, patch) => {
  expect(patchBack(queue, pointer, drafted)).toEqual(patch);
});

it("knows what a draft gives a field", () => {
  const drafted = { name: "a", action: "update" as const, edit: { quota: { gpu: null } } };
  expect(draftedValue(drafted, "/quota/gpu")).toBeNull();
  expect(draftedValue(drafted, "/limit/gpu")).toBeUndefined();
});

it("walks the fields of a row and ends at its borders", () => {
  expect(beside("/quota/gpu", "gpu", 1)).toBe("/limit/gpu");
  expect(beside("/priority", "gpu", 1)).toBeNull();
  expect(beside("/quota/gpu", "gpu", -1)).toBeNull();
});

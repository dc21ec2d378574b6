import { describe, expect, it } from "vitest";
import { needsExplanation, readAmountText } from "./amountText.ts";
import type { Resource } from "./rows.ts";

describe("readAmountText", () => {
  it.each<[Resource, string, number | string]>([
    ["gpu", "2.5", 2.5],
    ["gpu", "1,5", 1.5],
    ["gpu", "500m", 0.5],
    ["gpu", "4 GPUs", 4],
    ["gpu", ".5", 0.5],
    ["gpu", "4.", 4],
    ["cpuMilli", "2500m", 2_500],
    ["cpuMilli", "2.5 cores", 2_500],
    ["memoryBytes", "64", 64e9],
    ["memoryBytes", "64GB", 64e9],
    ["memoryBytes", "1Ti", 1_099_512e6],
    ["memoryBytes", "512 MiB", 537e6],
    ["gpu", "1,500", "ambiguous"],
    ["gpu", "-1", "negative"],
    ["gpu", "1.2345", "tooPrecise"],
    ["cpuMilli", "2.5m", "tooPrecise"],
    ["gpu", "2Gi", "notANumber"],
    ["memoryBytes", "5m", "notANumber"],
    ["memoryBytes", "5 apples", "notANumber"],
    ["gpu", "1.2.3", "notANumber"],
    ["gpu", "1e3", "notANumber"],
  ])("reads %s %s as %s", (resource, text, value) => {
    expect(readAmountText(resource, text)).toBe(value);
  });
});

it("explains only what is more than a plain number", () => {
  expect(["8", "0.5", "", "1,5", "2500m"].map(needsExplanation)).toEqual([
    false,
    false,
    false,
    true,
    true,
  ]);
});

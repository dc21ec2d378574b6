import { describe, expect, it } from "vitest";
import type { Pointer, Value } from "../model/values.ts";
import { showMemoryIn } from "./numbers.ts";
import { entryProblemText, FORM, fieldName, startText, valueText } from "./queues.ts";

describe("valueText", () => {
  it.each<[Pointer, Value, string]>([
    ["/quota/gpu", 2.5, "2.5 GPUs"],
    ["/quota/gpu", 1, "1 GPU"],
    ["/limit/gpu", "unlimited", "unlimited"],
    ["/limit/gpu", undefined, "unset"],
    ["/quota/memoryBytes", 64e9, "64 GB"],
    ["/weight/cpuMilli", 3, "3"],
    ["/priority", undefined, "unset"],
  ])("%s %s is %s", (pointer, value, text) => {
    expect(valueText(pointer, value)).toBe(text);
  });
});

it("names fields and counts changes", () => {
  expect([fieldName("/weight/memoryBytes"), fieldName("/priority")]).toEqual([
    "Memory over-quota weight",
    "Priority",
  ]);
  expect([FORM.changes(1), FORM.changes(2)]).toEqual(["1 field changed", "2 fields changed"]);
});

it("quotes what cannot be read", () => {
  expect(entryProblemText("notANumber", " 8x ")).toBe(
    '"8x" is not a number. Use digits and a decimal point.',
  );
});

it("starts a memory cell in the unit that is typed, also where another one is shown", () => {
  expect(startText("/quota/memoryBytes", 64e9)).toBe("64");
  showMemoryIn("GiB");
  expect(startText("/quota/memoryBytes", 64e9)).toBe("64 GB");
  expect([startText("/quota/memoryBytes", "unlimited"), startText("/quota/gpu", 8)]).toEqual([
    "unlimited",
    "8",
  ]);
  showMemoryIn("GB");
});

import { describe, expect, it } from "vitest";
import {
  amount,
  bound,
  clockTime,
  dateTime,
  gpuCount,
  milliseconds,
  modelName,
  showMemoryIn,
  showUtc,
  span,
  UNIT,
} from "./numbers.ts";

describe("span", () => {
  it.each([
    [-5, "0 s"],
    [59_999, "59 s"],
    [60_000, "1 min"],
    [3_900_000, "1 h 05 min"],
    [90_000_000, "1 d 1 h"],
  ])("%i ms is %s", (ms, words) => expect(span(ms)).toBe(words));
});

describe("amounts", () => {
  it("show cores and decimal gigabytes", () => {
    expect([amount("cpuMilli", 2_500), amount("memoryBytes", 64e9), amount("gpu", 0.25)]).toEqual([
      "2.5",
      "64",
      "0.25",
    ]);
  });

  it("show memory in binary units to those who want that", () => {
    showMemoryIn("GiB");
    expect(`${amount("memoryBytes", 64 * 2 ** 30)} ${UNIT.memoryBytes}`).toBe("64 GiB");
    showMemoryIn("GB");
    expect(`${amount("memoryBytes", 64e9)} ${UNIT.memoryBytes}`).toBe("64 GB");
  });

  it("keep unset, unlimited and zero apart", () => {
    expect([bound("gpu", undefined), bound("gpu", "unlimited"), bound("gpu", 0)]).toEqual([
      "unset",
      "unlimited",
      "0",
    ]);
  });
});

it.each([
  [0.2, "<1 ms"],
  [5.25, "5.3 ms"],
  [467.4, "467 ms"],
  [1_500, "1.50 s"],
])("%f ms reads %s", (ms, words) => expect(milliseconds(ms)).toBe(words));

it("leaves the maker out of a model's name", () => {
  expect([modelName("NVIDIA-L40S"), modelName("MI300X"), modelName("")]).toEqual([
    "L40S",
    "MI300X",
    "Unknown model",
  ]);
});

it("counts GPUs with their unit", () => {
  expect([gpuCount(1), gpuCount(0.5), gpuCount(1_200)]).toEqual([
    "1 GPU",
    "0.5 GPUs",
    "1,200 GPUs",
  ]);
});

it("shows times in UTC when asked to", () => {
  showUtc(true);
  expect([clockTime("2026-11-30T12:34:56Z"), dateTime("2026-11-30T12:34:56+02:00")]).toEqual([
    "12:34:56 UTC",
    "30/11/2026, 10:34:56 UTC",
  ]);
  showUtc(false);
  expect(clockTime("2026-11-30T12:34:56Z")).not.toContain("UTC");
});

import { describe, expect, it } from "vitest";
import { areaPath, coverage, largest, linePath, numbersOf, tickIndexes } from "./series.ts";

const x = (index: number) => index * 10;
const y = (value: number) => 100 - value;

describe("linePath", () => {
  it("is interrupted where nothing was observed", () => {
    expect(linePath([1, 2, null, 3, 4], x, y)).toBe("M0 99L10 98M30 97L40 96");
  });
  it("shows a single value between gaps as a dash", () => {
    expect(linePath([null, 5, null], x, y)).toBe("M10 95h1.5");
  });
});

describe("areaPath", () => {
  it("closes each part of the line at the bottom", () => {
    expect(areaPath([1, 2, null, 3, 4], x, y)).toBe(
      "M0 100L0 99L10 98L10 100ZM30 100L30 97L40 96L40 100Z",
    );
  });
  it("is empty without values", () => {
    expect(areaPath([null, null], x, y)).toBe("");
  });
});

describe("series", () => {
  it("leave out bounds that are no numbers", () => {
    expect(numbersOf([1, "unlimited", null])).toEqual([1, null, null]);
    expect(largest([[1, null], [7]], 2)).toBe(7);
    expect(largest([[]], 2)).toBe(2);
  });
  it("have at most as many ticks as asked for", () => {
    expect(tickIndexes(10, 4)).toEqual([0, 3, 6, 9]);
    expect(tickIndexes(2, 4)).toEqual([0, 1]);
    expect(tickIndexes(0, 4)).toEqual([]);
  });
  it("tell how much of a range was observed", () => {
    expect(coverage(1_800, "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z")).toBe(0.5);
    expect(coverage(4_000, "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z")).toBe(1);
  });
});

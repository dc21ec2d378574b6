import { expect, it } from "vitest";
import { fromShown, toShown } from "./units.ts";

it("survives being typed again", () => {
  expect(fromShown("gpu", toShown("gpu", 0.333))).toBe(0.333);
  expect(fromShown("cpuMilli", 2.5)).toBe(2_500);
  expect(fromShown("memoryBytes", 0.1)).toBe(100_000_000);
});

import { describe, expect, it } from "vitest";
import { isSame } from "./same.ts";

describe("isSame", () => {
  it.each([
    [{ a: 1 }, { a: 1, b: undefined }, false],
    [[1, 2], [1, 2], true],
    [[1, 2], [2, 1], false],
    [[], {}, false],
    [null, {}, false],
    [{ a: [{ b: null }] }, { a: [{ b: null }] }, true],
  ])("compares %j and %j", (a, b, same) => {
    expect(isSame(a, b)).toBe(same);
  });
});

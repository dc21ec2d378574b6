import { expect, it, vi } from "vitest";
import { isSame } from "../model/same.ts";
import { derivedOnce } from "./derived.ts";

it("derives once for each argument", () => {
  const derive = vi.fn((rows: readonly number[]) => rows.length);
  const lengthOf = derivedOnce(derive);
  const rows = [1, 2];
  expect([lengthOf(rows), lengthOf(rows), lengthOf([1, 2, 3])]).toEqual([2, 2, 3]);
  expect(derive).toHaveBeenCalledTimes(2);
});

it("returns the previous result while the new one is the same", () => {
  const namesOf = derivedOnce(
    (rows: readonly { name: string }[]) => rows.map(({ name }) => name),
    isSame,
  );
  const names = namesOf([{ name: "a" }]);
  expect(namesOf([{ name: "a" }])).toBe(names);
  expect(namesOf([{ name: "b" }])).toEqual(["b"]);
});

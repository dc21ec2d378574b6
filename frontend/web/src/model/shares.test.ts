import { expect, it } from "vitest";
import { waterfall } from "./shares.ts";

it("lets each step begin where the one before ended", () => {
  const { falls, reach } = waterfall([
    { kind: "quota", amount: 4 },
    { kind: "weight", amount: 6 },
    { kind: "demand", amount: -3 },
  ]);
  expect(falls.map(({ from, to }) => [from, to])).toEqual([
    [0, 4],
    [4, 10],
    [10, 7],
  ]);
  expect(reach).toBe(10);
  expect(waterfall([]).reach).toBe(0);
});

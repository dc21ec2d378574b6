import { expect, it } from "vitest";
import { workloadRow } from "../testing/rows.ts";
import { inOrder } from "./order.ts";

it("orders waiting workloads by place and counts the places of each queue", () => {
  const rows = [
    workloadRow({ name: "third", queue: "a", position: 3 }),
    workloadRow({ name: "runs", queue: "a", position: null }),
    workloadRow({ name: "first", queue: "a", position: 1 }),
    workloadRow({ name: "second", queue: "b", position: 2 }),
  ];
  const places = inOrder(rows).map(({ name, position, inQueue }) => [name, position, inQueue]);
  expect(places).toEqual([
    ["first", 1, 1],
    ["second", 2, 1],
    ["third", 3, 2],
  ]);
});

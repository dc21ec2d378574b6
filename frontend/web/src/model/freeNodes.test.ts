import { expect, it } from "vitest";
import { nodesByModel } from "./freeNodes.ts";

it("sums up the nodes of each model", () => {
  const freeByNode = [
    { model: "A100", free: 8, nodes: 2 },
    { model: "A100", free: 0, nodes: 5 },
    { model: "H100", free: 4, nodes: 1 },
  ];
  expect(nodesByModel({ freeByNode })).toEqual([
    {
      model: "A100",
      nodes: 7,
      counts: [
        { free: 8, nodes: 2 },
        { free: 0, nodes: 5 },
      ],
    },
    { model: "H100", nodes: 1, counts: [{ free: 4, nodes: 1 }] },
  ]);
});

import { expect, it } from "vitest";
import { freeDevice, nodeRow } from "../testing/rows.ts";
import { withNodes } from "./liveTopology.ts";
import type { Topology, TopologyDomain } from "./rows.ts";

const domain = (id: string, nodes: readonly string[]): TopologyDomain => ({
  id,
  parent: null,
  level: 0,
  name: id,
  nodes,
  gpuTotal: 99,
  gpuAllocated: 99,
  gpuFree: 99,
  largestGang: 99,
  workloads: 1,
});
const topology = (...domains: TopologyDomain[]): Topology => ({
  name: "network",
  levels: [{ label: "rack", name: "rack" }],
  domains,
  outside: [],
  workloads: [],
});
const nodes = (...rows: ReturnType<typeof nodeRow>[]) =>
  new Map(rows.map((row) => [row.name, row]));

it("adds up the nodes of each domain; a gang uses the whole free GPUs of each node", () => {
  const rows = nodes(
    nodeRow("a", 8, { gpuAllocated: 2.5 }),
    nodeRow("b", 8, { gpuAllocated: 7.5 }),
  );
  const [rack] = withNodes(topology(domain("r1", ["a", "b"])), rows).domains;
  expect(rack).toMatchObject({ gpuTotal: 16, gpuAllocated: 10, gpuFree: 6, largestGang: 5 });
  expect(rack?.workloads).toBe(1);
});

it("counts nothing free where no pod is placed, nor broken devices", () => {
  const rows = nodes(
    nodeRow("a", 8, { cordoned: true }),
    nodeRow("b", 8, { ready: false }),
    nodeRow("c", 2, { devices: [freeDevice(0), { ...freeDevice(1), state: "unhealthy" }] }),
  );
  const [rack] = withNodes(topology(domain("r1", ["a", "b", "c"])), rows).domains;
  expect(rack).toMatchObject({ gpuTotal: 18, gpuFree: 1, largestGang: 1 });
});

it("keeps the sums of the server while a node is not known", () => {
  const shown = topology(domain("r1", ["a", "b"]));
  expect(withNodes(shown, nodes(nodeRow("a", 8)))).toEqual(shown);
});

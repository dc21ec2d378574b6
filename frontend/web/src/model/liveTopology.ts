/** The domains of a topology with the GPUs of their nodes as they are now. */
import type { Node, Topology, TopologyDomain } from "./rows.ts";

type Sums = Pick<TopologyDomain, "gpuTotal" | "gpuAllocated" | "gpuFree" | "largestGang">;

/**
 * Return the topology with the sums of its domains taken from these nodes.
 *
 * The same sums as the server's: a node that is not ready, or cordoned, has no free GPU, and a gang of whole GPUs can
 * use the whole free ones of each node. A domain with a node that is not known keeps the server's sums.
 */
export function withNodes(topology: Topology, nodes: ReadonlyMap<string, Node>): Topology {
  const domains = topology.domains.map((domain) => {
    const members = domain.nodes.map((name) => nodes.get(name));
    return members.every((node) => node !== undefined) ? { ...domain, ...sumsOf(members) } : domain;
  });
  return { ...topology, domains };
}

function sumsOf(nodes: readonly Node[]): Sums {
  const sums = { gpuTotal: 0, gpuAllocated: 0, gpuFree: 0, largestGang: 0 };
  for (const node of nodes) {
    const free = freeOf(node);
    sums.gpuTotal += node.gpuTotal;
    sums.gpuAllocated += node.gpuAllocated;
    sums.gpuFree += free;
    sums.largestGang += Math.trunc(free);
  }
  return sums;
}

function freeOf({ ready, cordoned, devices, gpuTotal, gpuAllocated }: Node): number {
  if (!ready || cordoned) return 0;
  const unhealthy = devices.filter(({ state }) => state === "unhealthy").length;
  return Math.max(0, gpuTotal - unhealthy - gpuAllocated);
}

import { describe, expect, it } from "vitest";
import { freeDevice, nodeRow, queueRow, workloadRow } from "../../testing/rows.ts";
import { type Hit, type Sources, search } from "./search.ts";

const holder = { pod: "train-0", workload: "team/train", queue: "vision", gpu: 1 };
const SOURCES: Sources = {
  pages: [{ name: "Queues", to: "/queues" }],
  queues: [queueRow({ name: "team-vision", displayName: "Vision" }), queueRow({ name: "speech" })],
  workloads: [
    workloadRow({ name: "pg-1", owner: "train", queue: "vision", user: "ann" }),
    workloadRow({ name: "pg-2", owner: "retrain", queue: "speech", user: "ann" }),
  ],
  nodes: [
    nodeRow("h100-1", 2, {
      devices: [freeDevice(0), { ...freeDevice(1), state: "allocated", holders: [holder] }],
    }),
  ],
};
const shown = (hits: Hit[]) => hits.map(({ kind, label, to }) => `${kind} ${label} ${to}`);

describe("search", () => {
  it("offers only the pages before anything is typed", () => {
    expect(shown(search(" ", SOURCES))).toEqual(["page Queues /queues"]);
  });

  it("finds a queue by name and by display name", () => {
    const queue = "queue Vision /queues?queue=team-vision";
    expect(shown(search("team-vis", SOURCES))).toEqual([queue]);
    expect(shown(search("VISION", SOURCES))).toContain(queue);
  });

  it("lists what starts with the text before what only has it, and each kind together", () => {
    expect(shown(search("train", SOURCES))).toEqual([
      "workload train /workloads/team/pg-1",
      "workload retrain /workloads/team/pg-2",
      "gpu h100-1 GPU 1 /nodes?q=h100-1",
      "pod train-0 /workloads/team/train",
    ]);
  });

  it("finds a user once, and a GPU by its node and number", () => {
    expect(shown(search("ann", SOURCES))).toEqual(["user ann /workloads?q=ann"]);
    expect(shown(search("h100-1 gpu 1", SOURCES))[0]).toBe("gpu h100-1 GPU 1 /nodes?q=h100-1");
  });

  it("needs every word, and takes characters with a meaning in patterns literally", () => {
    expect(search("train missing", SOURCES)).toEqual([]);
    expect(search("(", SOURCES)).toEqual([]);
  });
});

import { expect, it } from "vitest";
import { workloadRow } from "../../testing/rows.ts";
import { actionsFor, holdEnd } from "./actions.ts";

it.each([
  [{ state: "pending" }, ["hold"]],
  [{ state: "pending", hold: { reason: "budget", until: null, by: "" } }, ["release"]],
  [{ state: "running" }, ["hold", "requeue"]],
  [{ state: "running", kind: "Pod" }, ["hold"]],
  [{ state: "pending", reason: "BindFailing" }, ["hold", "retry-bind"]],
  [{ state: "pending", reason: "Unmanaged" }, []],
  [{ state: "finished" }, []],
] as const)("a workload with %j can be: %j", (change, actions) => {
  expect(actionsFor(workloadRow({ name: "w", ...change }))).toEqual(actions);
});

it("a hold of some hours ends at a time, one without hours does not", () => {
  expect([holdEnd(8, Date.UTC(2026, 0, 1)), holdEnd(0, 0)]).toEqual([
    "2026-01-01T08:00:00.000Z",
    undefined,
  ]);
});

import { expect, it } from "vitest";
import { firstSteps } from "./firstSteps.ts";

const EMPTY = {
  nodes: { total: 0, ready: 0, cordoned: 0 },
  gpus: { total: 0, allocated: 0, free: 0, unusable: 0 },
  queues: { total: 2, orphans: 0 },
  workloads: { pending: 0, running: 0, finished: 0, failed: 0 },
  sessions: { perMinute: 0, lastId: null, lastDurationMs: null, lastStartedAt: null, p95Ms: null },
};

const done = (change: object) =>
  firstSteps({ ...EMPTY, ...change })
    .filter(({ isDone }) => isDone)
    .map(({ step }) => step);

it("does not count the queues of a new installation, and counts finished work", () => {
  expect(done({})).toEqual([]);
  expect(done({ queues: { total: 3, orphans: 0 } })).toEqual(["queue"]);
  expect(done({ workloads: { pending: 0, running: 0, finished: 1, failed: 0 } })).toEqual([
    "workload",
  ]);
  expect(done({ nodes: { total: 2, ready: 1, cordoned: 0 } })).toEqual(["nodes"]);
});

import { expect, it } from "vitest";
import type { Eviction, WorkloadEvent } from "./rows.ts";
import { timelineOf } from "./timeline.ts";

const event = (lastSeen: string | null): WorkloadEvent => ({
  about: "Pod p",
  type: "Normal",
  reason: "Pipelined",
  text: "",
  count: 1,
  firstSeen: null,
  lastSeen,
});

it("puts records and events into one order, newest first", () => {
  const moments = timelineOf(
    { createdAt: "2026-01-01T00:00:00Z", startedAt: "2026-01-01T00:02:00Z" },
    [{ at: "2026-01-01T00:03:00Z" } as Eviction],
    [event("2026-01-01T00:01:00Z"), event(null)],
  );
  expect(moments.map(({ kind }) => kind)).toEqual(["evicted", "started", "event", "created"]);
});

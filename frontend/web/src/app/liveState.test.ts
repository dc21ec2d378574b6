import { describe, expect, it } from "vitest";
import type { LiveStatus } from "../live/client.ts";
import { liveState } from "./liveState.ts";

const open: LiveStatus = {
  link: "open",
  retryAt: null,
  paused: false,
  waiting: 3,
  heardAt: 100_000,
  lagMs: 0,
  asOf: null,
};

describe("liveState", () => {
  it.each<[Partial<LiveStatus>, number, string]>([
    [{}, 105_000, "Live"],
    [{ paused: true }, 105_000, "Paused · 3"],
    [{}, 145_000, "Delayed 45 s"],
    [{ lagMs: 12_000 }, 101_000, "Delayed 12 s"],
    [{ link: "connecting" }, 105_000, "Connecting"],
    [{ link: "offline", retryAt: 109_000 }, 105_000, "Offline"],
    [{ link: "expired" }, 105_000, "Signed out"],
    [{ link: "refused" }, 105_000, "Refused"],
  ])("%j at %i shows %s", (change, now, label) => {
    expect(liveState({ ...open, ...change }, now).label).toBe(label);
  });

  it("counts down to the next attempt", () => {
    expect(liveState({ ...open, link: "offline", retryAt: 109_000 }, 105_000).detail).toBe(
      "The connection was lost. Next attempt in 4 s.",
    );
  });
});

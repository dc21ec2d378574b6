import { describe, expect, it } from "vitest";
import type { LiveStatus } from "../live/client.ts";
import { liveWords } from "./liveWords.ts";

const open: LiveStatus = { link: "open", retryAt: null, paused: false, heardAt: 100_000, lagMs: 0 };

describe("liveWords", () => {
  it.each<[Partial<LiveStatus>, number, string]>([
    [{}, 105_000, "Live"],
    [{ paused: true }, 105_000, "Paused · 3"],
    [{}, 145_000, "Delayed 45 s"],
    [{ lagMs: 12_000 }, 101_000, "Delayed 12 s"],
    [{ link: "connecting" }, 105_000, "Connecting"],
    [{ link: "offline", retryAt: 109_000 }, 105_000, "Offline"],
    [{ link: "expired" }, 105_000, "Signed out"],
    [{ link: "refused" }, 105_000, "Refused"],
  ])("%j at %i says %s", (change, now, word) => {
    expect(liveWords({ ...open, ...change }, 3, now).word).toBe(word);
  });

  it("counts down to the next try", () => {
    expect(liveWords({ ...open, link: "offline", retryAt: 109_000 }, 0, 105_000).why).toBe(
      "The connection was lost; next try in 4 s.",
    );
  });
});

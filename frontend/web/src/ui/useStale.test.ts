import { describe, expect, it } from "vitest";
import type { LiveStatus } from "../live/client.ts";
import { staleMs } from "./useStale.ts";

const STATUS: LiveStatus = {
  link: "open",
  heardAt: 100_000,
  lagMs: 0,
  asOf: null,
  paused: false,
  waiting: 0,
  retryAt: null,
};

describe("staleMs", () => {
  it("is null while data arrives and is current", () => {
    expect(staleMs(STATUS, 120_000)).toBeNull();
    expect(staleMs({ ...STATUS, heardAt: null }, 500_000)).toBeNull();
  });

  it("is the lag of the mirror although frames arrive", () => {
    expect(staleMs({ ...STATUS, lagMs: 59_000 }, 101_000)).toBeNull();
    expect(staleMs({ ...STATUS, lagMs: 75_000 }, 101_000)).toBe(75_000);
  });

  it("is the silence of a lost or hanging connection", () => {
    expect(staleMs({ ...STATUS, link: "offline", lagMs: 900_000 }, 130_000)).toBeNull();
    expect(staleMs({ ...STATUS, link: "offline" }, 161_000)).toBe(61_000);
    expect(staleMs(STATUS, 161_000)).toBe(61_000);
  });
});

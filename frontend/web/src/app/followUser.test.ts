import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { usePreferences } from "../ui/preferences.ts";
import { followUser } from "./followUser.ts";

const DEFAULTS = usePreferences.getInitialState();
let sent: unknown[];
let isAway: boolean;
let end: () => void;

beforeEach(() => {
  sent = [];
  isAway = false;
  usePreferences.setState(DEFAULTS);
  vi.stubGlobal("fetch", async (url: string, init: RequestInit) => {
    if (isAway) throw new TypeError("away");
    sent.push([init.method, url, JSON.parse(String(init.body))]);
    return Response.json({});
  });
});
afterEach(() => {
  end();
  localStorage.clear();
  vi.unstubAllGlobals();
});

it("starts with what the server has, and leaves the rest as it is in this browser", () => {
  usePreferences.setState({ utc: true });
  end = followUser({ memoryUnit: "GiB", theme: "dark" });
  expect(usePreferences.getState()).toMatchObject({ memoryUnit: "GiB", utc: true });
  expect(localStorage.getItem("mantine-color-scheme-value")).toBe("dark");
  expect(sent).toEqual([]);
});

it("sends each new choice, and only that", () => {
  end = followUser({});
  usePreferences.getState().set({ density: "compact" });
  expect(sent).toEqual([["PATCH", "/api/v1/me/preferences", { density: "compact" }]]);
});

it("keeps a choice in this browser while the server is away", async () => {
  end = followUser({});
  isAway = true;
  usePreferences.getState().set({ memoryUnit: "GiB" });
  await Promise.resolve();
  expect(usePreferences.getState().memoryUnit).toBe("GiB");
  expect(localStorage.getItem("kaiweb-preferences")).toContain("GiB");
});

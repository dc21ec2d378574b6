import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { RESTING } from "../../i18n/binds.ts";
import { LiveProvider } from "../../live/react.tsx";
import { silentLive } from "../../testing/live.ts";
import { adminMe } from "../../testing/me.ts";
import { nodeRow } from "../../testing/rows.ts";
import { RestingNodes } from "./RestingNodes.tsx";

vi.setConfig({ testTimeout: 30_000 });

let postedPaths: string[];

beforeEach(() => {
  postedPaths = [];
  vi.stubGlobal("fetch", async (url: string, init: RequestInit) => {
    const path = url.replace("/api/v1", "");
    if (init.method === "POST") postedPaths.push(path);
    return Response.json(path === "/me" ? adminMe() : { name: "n0", workloads: ["team/a"] });
  });
});
afterEach(() => vi.unstubAllGlobals());

/** Render a node whose rest ends in some seconds, and one that does not rest; return the end of the rest. */
function renderNodes(restSeconds: number) {
  const restEnd = new Date(Date.now() + restSeconds * 1_000).toISOString();
  const rest = { until: restEnd, pods: ["team/a-0", "team/b-0", "team/c-0"] };
  const nodes = new Map(
    [nodeRow("n0", 8, { rest }), nodeRow("n1", 8)].map((row) => [row.name, row]),
  );
  render(
    <MantineProvider>
      <QueryClientProvider client={new QueryClient()}>
        <LiveProvider client={silentLive().live}>
          <RestingNodes nodes={nodes} />
        </LiveProvider>
      </QueryClientProvider>
    </MantineProvider>,
  );
  return restEnd;
}

it("names the node that rests, until when, and lets its pods be tried again", async () => {
  const restEnd = renderNodes(50);
  expect(screen.getByText(RESTING.node("n0", restEnd, 3))).toBeTruthy();
  const button = screen.getByRole("button", { name: RESTING.buttonLabel("n0") });
  await waitFor(() => expect(button.getAttribute("aria-disabled")).toBe("false"));
  fireEvent.click(button);
  fireEvent.click(await screen.findByRole("button", { name: RESTING.submit }));
  await waitFor(() => expect(postedPaths).toEqual(["/nodes/n0/retry-bind"]));
});

it("still names the node when the clock draws it again", () => {
  vi.useFakeTimers();
  const restEnd = renderNodes(50);
  act(() => vi.advanceTimersByTime(2_000));
  vi.useRealTimers();
  expect(screen.getByText(RESTING.node("n0", restEnd, 3))).toBeTruthy();
});

it("shows nothing once the time is over", () => {
  renderNodes(-1);
  expect(screen.queryByRole("list")).toBeNull();
});

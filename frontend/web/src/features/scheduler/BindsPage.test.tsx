import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { fireEvent, render, screen } from "@testing-library/react";
import { MemoryRouter } from "react-router";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { BINDS } from "../../i18n/binds.ts";
import type { BindRequest } from "../../model/rows.ts";
import { BindsPage } from "./BindsPage.tsx";

const FAILED: BindRequest = {
  namespace: "team",
  name: "a-0",
  pod: "a-0",
  node: "n1",
  phase: "Failed",
  reason: "the node has no free GPU left",
  failedAttempts: 3,
  resourceType: "Fraction",
  gpuGroups: ["g1"],
  createdAt: "2026-01-01T00:00:00Z",
};
let requests: BindRequest[];
let paths: string[];

beforeEach(() => {
  requests = [FAILED];
  paths = [];
  vi.stubGlobal("fetch", async (url: string) => {
    const path = url.replace("/api/v1", "");
    paths.push(path);
    if (path.startsWith("/bind-requests?")) return Response.json({ items: requests, next: null });
    return requests.length > 0
      ? Response.json(FAILED)
      : Response.json({ title: "Not found", detail: "" }, { status: 404 });
  });
});
afterEach(() => vi.unstubAllGlobals());

function start(address: string) {
  render(
    <MantineProvider env="test">
      <QueryClientProvider
        client={new QueryClient({ defaultOptions: { queries: { retry: false } } })}
      >
        <MemoryRouter initialEntries={[address]}>
          <BindsPage />
        </MemoryRouter>
      </QueryClientProvider>
    </MantineProvider>,
  );
}

it("opens one request beside the list, with the reason of its failure", async () => {
  start("/scheduler/binds?phase=Failed");
  fireEvent.click(await screen.findByRole("link", { name: "team/a-0" }));
  expect(await screen.findByText(FAILED.reason)).toBeTruthy();
  expect(screen.getByText(BINDS.request("team/a-0"))).toBeTruthy();
  expect(paths).toContain("/bind-requests?limit=100&phase=Failed");
  expect(paths).toContain("/bind-requests/team/a-0");
});

it("says that a request is gone", async () => {
  requests = [];
  start("/scheduler/binds?request=team/a-0");
  expect(await screen.findByText(BINDS.missingTitle)).toBeTruthy();
});

import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { fireEvent, render, screen, within } from "@testing-library/react";
import { createMemoryRouter, RouterProvider } from "react-router";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { HISTORY, USAGE } from "../../i18n/usage.ts";
import { LiveProvider } from "../../live/react.tsx";
import type { QueueHistory, UsageHistory, UsageReport } from "../../model/rows.ts";
import { silentLive } from "../../testing/live.ts";
import { adminMe } from "../../testing/me.ts";
import { HistoryTab } from "../queue/HistoryTab.tsx";
import { UsagePage } from "./UsagePage.tsx";

vi.setConfig({ testTimeout: 30_000 });

const FRAME = {
  from: "2026-11-28T00:00:00.000Z",
  to: "2026-11-30T00:00:00.000Z",
  stepSeconds: 86_400,
  times: ["2026-11-28T00:00:00.000Z", "2026-11-29T00:00:00.000Z"],
  coveredSeconds: [86_400, 0],
};
const BARS: UsageHistory = {
  ...FRAME,
  inQuotaHours: [120, null],
  overQuotaHours: [24, null],
  waitingHours: [24, null],
  capacityHours: [384, null],
  idleHours: [96, null],
  allocatedButIdleHours: [null, null],
};
const AMOUNTS = {
  gpuHours: 144,
  inQuotaHours: 120,
  overQuotaHours: 24,
  waitingHours: 24,
  allocatedButIdleHours: null,
  utilisationUnknownHours: 144,
  cost: 288,
};
const HISTORY_OF_TEAM: QueueHistory = {
  ...FRAME,
  series: [
    {
      queue: "team",
      allocated: [6, null],
      waiting: [1, null],
      share: [8, null],
      quota: [8, 8],
      limit: ["unlimited", "unlimited"],
    },
  ],
  days: [
    {
      day: "2026-11-28",
      starts: 3,
      evictions: 1,
      waitedP50Seconds: 30,
      waitedP90Seconds: 90,
      waitedMaxSeconds: 90,
    },
  ],
};

let asked: URL[];
let currency: string | null;
let isConfigured: boolean;
let notUsed: number | null;

function report(by: UsageReport["by"]): UsageReport {
  const amounts = { ...AMOUNTS, allocatedButIdleHours: notUsed };
  if (notUsed !== null) amounts.utilisationUnknownHours = 44;
  const key = { queue: "team", owner: "", model: "NVIDIA-H100" }[by];
  return {
    items: [{ key, ...amounts }],
    next: null,
    asOf: { time: null, session: null, rv: "1" },
    by,
    from: FRAME.from,
    to: FRAME.to,
    coveredSeconds: 86_400,
    total: amounts,
    cluster: {
      capacityHours: 384,
      allocatedHours: 288,
      idleHours: 96,
      allocatedButIdleHours: null,
      utilisationUnknownHours: 288,
    },
    utilisation: {
      idleBelowPercent: 5,
      configured: isConfigured,
      readAt: null,
      devices: 0,
      error: "",
    },
    currency,
  };
}

const EDIT = {
  id: 1,
  at: "2026-11-28T12:00:00.000Z",
  actor: "ana",
  state: "done",
  reason: "more work",
  diff: [{ pointer: "/quota/gpu", before: 8, after: 12 }],
};

function serve(url: URL): Response {
  asked.push(url);
  if (url.pathname === "/api/v1/me") return Response.json(adminMe());
  if (url.pathname === "/api/v1/history/usage") return Response.json(BARS);
  if (url.pathname === "/api/v1/queues/team/history") return Response.json(HISTORY_OF_TEAM);
  if (url.pathname === "/api/v1/audit") return Response.json({ items: [EDIT], next: null });
  if (url.pathname === "/api/v1/evictions") return Response.json({ items: [], next: null });
  return Response.json(report(url.searchParams.get("by") as UsageReport["by"]));
}

function show(path: string) {
  const router = createMemoryRouter(
    [
      { path: "/usage", Component: UsagePage },
      { path: "/queues/:name/history", element: <HistoryTab name="team" /> },
    ],
    { initialEntries: [path] },
  );
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={new QueryClient()}>
        <LiveProvider client={silentLive().live}>
          <RouterProvider router={router} />
        </LiveProvider>
      </QueryClientProvider>
    </MantineProvider>,
  );
  return router;
}

beforeEach(() => {
  asked = [];
  currency = null;
  isConfigured = false;
  notUsed = null;
  vi.stubGlobal("fetch", async (path: string) => serve(new URL(path, "http://test")));
});

afterEach(() => vi.unstubAllGlobals());

const cells = (row: HTMLElement) =>
  within(row)
    .getAllByRole("cell")
    .map((cell) => cell.textContent);

describe("the usage page", () => {
  it("shows who used what, in quota and over it, with the total", async () => {
    show("/usage");
    const table = await screen.findByRole("region", { name: USAGE.table });
    const [, row, total] = within(table).getAllByRole("row");
    expect(cells(row as HTMLElement)).toEqual(["team", "144", "120", "24", "24", USAGE.unknown]);
    expect(cells(total as HTMLElement)).toEqual([
      USAGE.total,
      "144",
      "120",
      "24",
      "24",
      USAGE.unknown,
    ]);
    expect(screen.getByText(USAGE.observed(0.5))).toBeTruthy();
    expect(screen.getByText(USAGE.ofCapacity(0.25))).toBeTruthy();
    expect(screen.getByText(USAGE.notUsedUnknown(false, ""))).toBeTruthy();
    expect(screen.queryByText(USAGE.notUsed)).toBeNull();
    expect(screen.queryByText(USAGE.columns.cost)).toBeNull();
  });

  it("shows what was held but not used where it is known, as a part of the known hours", async () => {
    notUsed = 25;
    show("/usage");
    expect(await screen.findByText(USAGE.notUsed)).toBeTruthy();
    expect(screen.getByText(USAGE.ofHeld(0.25))).toBeTruthy();
    expect(screen.getByText(USAGE.notUsedNote("44", 5))).toBeTruthy();
    const table = screen.getByRole("region", { name: USAGE.table });
    expect(cells(within(table).getAllByRole("row")[1] as HTMLElement).at(-1)).toBe("25");
  });

  it("shows cost where there are prices", async () => {
    currency = "EUR";
    show("/usage");
    expect(await screen.findAllByText("288.00 EUR")).toHaveLength(3);
  });

  it("groups by user, says who has no label, and offers the same rows as CSV", async () => {
    const router = show("/usage");
    fireEvent.click(await screen.findByLabelText(USAGE.bys.owner));
    expect(await screen.findByText(USAGE.noUser)).toBeTruthy();
    expect(router.state.location.search).toBe("?by=owner");
    const link = screen.getByRole("link", { name: USAGE.csv }) as HTMLAnchorElement;
    expect(new URL(link.href).search).toMatch(/^\?from=.*&by=owner&format=csv$/);
  });

  it("keeps gaps empty in the table of the bars", async () => {
    show("/usage?range=30d");
    fireEvent.click(
      (await screen.findAllByRole("button", { name: "Show as table" }))[0] as Element,
    );
    const figure = screen.getByRole("figure");
    const [, day, gap] = within(figure).getAllByRole("row");
    expect(cells(day as HTMLElement)).toEqual(["2026-11-28 00:00", "120", "24", "96"]);
    expect(cells(gap as HTMLElement)).toEqual(["2026-11-29 00:00", "–", "–", "–"]);
    const bars = asked.find(({ pathname }) => pathname.endsWith("/history/usage"));
    expect(bars?.searchParams.get("step")).toBe("86400");
  });
});

describe("the history of a queue", () => {
  it("shows its lines without an unlimited limit, and its waiting times by day", async () => {
    show("/queues/team/history?range=7d");
    expect(await screen.findByText(HISTORY.quota)).toBeTruthy();
    expect(screen.queryByText(HISTORY.limit)).toBeNull();
    const table = screen.getByRole("group", { name: HISTORY.dayTable });
    expect(cells(within(table).getAllByRole("row")[1] as HTMLElement)).toEqual([
      "2026-11-28",
      "3",
      "30 s",
      "1 min",
      "1 min",
      "1",
    ]);
  });

  it("marks a change of the queue in the chart, and lists it", async () => {
    show("/queues/team/history?range=7d");
    const table = await screen.findByRole("group", { name: HISTORY.happenings });
    expect(cells(within(table).getAllByRole("row")[1] as HTMLElement).slice(1)).toEqual([
      HISTORY.changed,
      "ana",
      "GPU quota 8 GPUs → 12 GPUs · more work",
    ]);
    expect(asked.find(({ pathname }) => pathname.endsWith("/audit"))?.search).toContain(
      "queue=team",
    );
  });
});

import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { render, screen } from "@testing-library/react";
import { MemoryRouter } from "react-router";
import { expect, it, vi } from "vitest";
import { TILE } from "../../i18n/nodes.ts";
import { deviceText } from "../../i18n/ui.ts";
import { LiveProvider } from "../../live/react.tsx";
import { silentLive } from "../../testing/live.ts";
import { freeDevice, nodeRow } from "../../testing/rows.ts";
import { NodeTile } from "./NodeTile.tsx";

vi.setConfig({ testTimeout: 30_000 });

const HOLDER = { pod: "ns/train-0", workload: "ns/train", queue: "team", gpu: 1 };
const HELD = { ...freeDevice(0), state: "whole", used: 1, holders: [HOLDER] };
const IDLE = { ...HELD, utilisation: 2, idleSince: "2026-01-01T00:00:00Z" };

it("says the utilisation of a device only where it is known, and whether the device is idle", () => {
  expect(deviceText(HELD)).toBe("GPU 0: ns/train-0 (team, 1)");
  expect(deviceText({ ...HELD, utilisation: 80 })).toBe(
    "GPU 0: ns/train-0 (team, 1), utilisation 80%",
  );
  expect(deviceText(IDLE)).toBe("GPU 0: ns/train-0 (team, 1), utilisation 2%, idle");
});

function renderTile(gpuIdle: number | null) {
  const node = nodeRow("n0", 1, { devices: [gpuIdle ? IDLE : HELD], gpuAllocated: 1, gpuIdle });
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={new QueryClient()}>
        <LiveProvider client={silentLive().live}>
          <MemoryRouter>
            <NodeTile
              node={node}
              hues={new Map()}
              active={null}
              rowIndex={1}
              onOpen={() => {}}
              onKeyDown={() => {}}
            />
          </MemoryRouter>
        </LiveProvider>
      </QueryClientProvider>
    </MantineProvider>,
  );
}

it("marks a node and its device that is allocated but idle", () => {
  renderTile(1);
  expect(screen.getByText(TILE.idle(1))).toBeTruthy();
  expect(document.querySelectorAll("[data-idle]")).toHaveLength(1);
});

it("marks nothing where the utilisation is unknown", () => {
  renderTile(null);
  expect(screen.queryByTitle(TILE.idleTitle(1))).toBeNull();
  expect(document.querySelectorAll("[data-idle]")).toHaveLength(0);
});

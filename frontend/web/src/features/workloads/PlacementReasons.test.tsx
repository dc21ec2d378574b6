import { render, screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { becauseText, PLACED } from "../../i18n/placement.ts";
import type { PodPlacement, PodRow, WorkloadDetail } from "../../model/rows.ts";
import { InPage } from "../../testing/InPage.tsx";
import { workloadRow } from "../../testing/rows.ts";
import { PlacementReasons } from "./PlacementReasons.tsx";

const PLACEMENT: PodPlacement = {
  pod: "a-0",
  node: "n1",
  at: "2026-01-01T00:00:00Z",
  strategy: "binpack",
  decidedBy: "binpack",
  score: 1009,
  nextNode: "n2",
  nextScore: 1004.5,
  terms: [
    { name: "binpack", chosen: 9, next: 4.5 },
    { name: "nodeavailability", chosen: 1000, next: 1000 },
  ],
  nodes: 5,
  considered: 5,
  possible: 2,
  refused: [{ reason: "gpu", nodes: 3 }],
};

function show(placements: readonly PodPlacement[], pods: number) {
  vi.stubGlobal("fetch", async () => Response.json({ placements }));
  const podList = Array.from({ length: pods }, (_, index) => ({ name: `a-${index}`, node: "n1" }));
  const workload = {
    ...workloadRow({ name: "a" }),
    podList: podList as unknown as readonly PodRow[],
  } as WorkloadDetail;
  render(
    <InPage>
      <PlacementReasons workload={workload} />
    </InPage>,
  );
}

it("says what decided, both scores in parts, and who could not take the pod", async () => {
  show([PLACEMENT], 3);
  const row = (await screen.findByText(becauseText("binpack"))).closest("tr");
  const cells = [...(row?.children ?? [])].map(({ textContent }) => textContent);
  expect(cells).toEqual([
    "a-0on n1",
    becauseText("binpack"),
    "1,009binpack 9room at once 1,000",
    "n2 1,004.5binpack 4.5room at once 1,000",
    "2 of 5 nodes could take it3: too few free GPUs",
  ]);
  expect(screen.getByText(PLACED.others(2))).toBeTruthy();
});

it("says so when nothing was recorded", async () => {
  show([], 1);
  expect(await screen.findByText(PLACED.missingTitle)).toBeTruthy();
});

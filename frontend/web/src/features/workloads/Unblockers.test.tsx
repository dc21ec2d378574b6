import { fireEvent, render, screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { UNBLOCK } from "../../i18n/workloads.ts";
import type { Unblock, WorkloadDetail } from "../../model/rows.ts";
import { draftEditsOf } from "../../model/unblocks.ts";
import { InPage } from "../../testing/InPage.tsx";
import { adminMe } from "../../testing/me.ts";
import { workloadRow } from "../../testing/rows.ts";
import { Unblockers } from "./Unblockers.tsx";

vi.setConfig({ testTimeout: 30_000 });

const LIMIT: Unblock = {
  code: "raise-limit",
  text: "a higher limit of queue 'a': gpu 2 → 4",
  edits: { queues: [{ name: "a", edit: { limit: { gpu: 4 } } }] },
  simulation: 7,
  evictedWorkloads: 1,
};
const NODE: Unblock = {
  code: "add-node",
  text: "one more node like 'n1' (8 GPUs)",
  edits: { nodes: { add: [{ like: "n1", name: "one-more" }] } },
  simulation: 8,
  evictedWorkloads: 0,
};

function ask(unblocks: readonly Unblock[]) {
  const paths: string[] = [];
  vi.stubGlobal("fetch", async (request: Request | string) => {
    const path = typeof request === "string" ? request : request.url;
    paths.push(path);
    return Response.json(path.endsWith("/me") ? adminMe() : { unblocks });
  });
  const workload = { ...workloadRow({ name: "job" }), podList: [] } as unknown as WorkloadDetail;
  render(
    <InPage>
      <Unblockers workload={workload} />
    </InPage>,
  );
  fireEvent.click(screen.getByRole("button", { name: UNBLOCK.ask }));
  return paths;
}

it("asks only on request, and shows who would be evicted and the simulation", async () => {
  const paths = ask([LIMIT, NODE]);
  expect(await screen.findByText(LIMIT.text)).toBeTruthy();
  expect(paths.filter((path) => path.includes("verify=true"))).toHaveLength(1);
  expect(screen.getByText(UNBLOCK.evicted(1))).toBeTruthy();
  const links = screen.getAllByRole("link", { name: UNBLOCK.simulation });
  expect(links.map((link) => link.getAttribute("href"))).toEqual(["/simulate/7", "/simulate/8"]);
  // A node cannot be added by an edit of queues.
  expect(screen.getAllByRole("button", { name: UNBLOCK.add })).toHaveLength(1);
});

it("says so when nothing that was tried helps", async () => {
  ask([]);
  expect(await screen.findByText(UNBLOCK.nothing)).toBeTruthy();
});

it("turns a bound that unblocks into an edit of the draft", () => {
  expect(draftEditsOf(LIMIT)).toEqual([
    { name: "a", action: "update", edit: { limit: { gpu: 4 } } },
  ]);
  expect(draftEditsOf(NODE)).toEqual([]);
});

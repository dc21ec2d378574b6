import { fireEvent, render, screen, waitFor } from "@testing-library/react";
import { beforeEach, expect, it, vi } from "vitest";
import { POLICIES } from "../../i18n/settings.ts";
import type { Policies } from "../../model/rows.ts";
import { InPage } from "../../testing/InPage.tsx";
import { PoliciesPanel } from "./PoliciesPanel.tsx";

let stored: Policies;
let sent: { path: string; body: unknown; tag: string | undefined }[];

beforeEach(() => {
  stored = { approval: "none", belowUse: "warn", etag: '"warn-none"' };
  sent = [];
  vi.stubGlobal("fetch", async (url: string, init: RequestInit) => {
    if (init.method === "GET") return Response.json(stored);
    const tag = (init.headers as Record<string, string>)["If-Match"];
    const body = JSON.parse(String(init.body));
    sent.push({ path: url, body, tag });
    if (tag !== stored.etag) {
      const problem = { title: "Stale", status: 412, detail: "changed since you read them" };
      return Response.json(problem, {
        status: 412,
        headers: { "Content-Type": "application/problem+json" },
      });
    }
    stored = { ...stored, ...body, etag: '"new"' };
    return Response.json(stored);
  });
});

function radio(name: string) {
  return screen.getByRole<HTMLInputElement>("radio", { name });
}

async function draw(isAdmin: boolean) {
  render(
    <InPage>
      <PoliciesPanel isAdmin={isAdmin} />
    </InPage>,
  );
  await screen.findByRole("radio", { name: POLICIES.approvals.none.label });
}

it("an admin chooses and saves; the version read goes with it", async () => {
  await draw(true);
  const save = screen.getByRole<HTMLButtonElement>("button", { name: POLICIES.save });
  expect(save.disabled).toBe(true);
  fireEvent.click(radio(POLICIES.approvals.reductions.label));
  fireEvent.change(screen.getByLabelText(POLICIES.reason), { target: { value: "four eyes" } });
  fireEvent.click(save);
  await screen.findByText(POLICIES.savedText);
  expect(sent).toEqual([
    {
      path: "/api/v1/policies?reason=four+eyes",
      body: { approval: "reductions", belowUse: "warn" },
      tag: '"warn-none"',
    },
  ]);
  await waitFor(() => expect(save.disabled).toBe(true));
  expect(radio(POLICIES.approvals.reductions.label).checked).toBe(true);
});

it("a choice on an older version is refused and kept, and saved with the next try", async () => {
  await draw(true);
  stored = { approval: "all", belowUse: "warn", etag: '"warn-all"' };
  fireEvent.click(radio(POLICIES.belowUses.block.label));
  const save = screen.getByRole("button", { name: POLICIES.save });
  fireEvent.click(save);
  await screen.findByText("changed since you read them");
  await waitFor(() => expect(radio(POLICIES.approvals.all.label).checked).toBe(true));
  expect(radio(POLICIES.belowUses.block.label).checked).toBe(true);
  fireEvent.click(save);
  await screen.findByText(POLICIES.savedText);
  expect(stored).toMatchObject({ approval: "all", belowUse: "block" });
});

it("whoever is no admin reads them", async () => {
  await draw(false);
  expect(screen.getByText(POLICIES.locked)).toBeTruthy();
  expect(radio(POLICIES.approvals.all.label).disabled).toBe(true);
  expect(screen.queryByRole("button", { name: POLICIES.save })).toBeNull();
});

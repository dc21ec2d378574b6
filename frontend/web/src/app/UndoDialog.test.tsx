import { notifications } from "@mantine/notifications";
import { QueryClient } from "@tanstack/react-query";
import { fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { useLastWrite } from "../editing/useUndo.ts";
import { UNDO } from "../i18n/changes.ts";
import type { Change } from "../model/rows.ts";
import { changeRow } from "../testing/changes.ts";
import { InPage } from "../testing/InPage.tsx";
import { adminMe } from "../testing/me.ts";
import { previewAnswer, simulated } from "../testing/rows.ts";
import { UndoDialog } from "./UndoDialog.tsx";

let written: string[];
let changes: Change[];

beforeEach(() => {
  written = [];
  changes = [];
  vi.stubGlobal("fetch", async (url: string, { method }: RequestInit) => {
    const path = url.replace("/api/v1", "").replace(/\?.*/, "");
    if (method === "POST") written.push(path);
    if (path === "/changes") return Response.json({ items: changes, next: null });
    if (path.startsWith("/simulations/")) return Response.json(simulated(previewAnswer({})));
    if (path.endsWith(":preview")) return Response.json(changeRow({ id: 9, preview: 1 }));
    const state = path.endsWith(":apply") ? "applied" : "draft";
    return Response.json(changeRow({ id: 9, state }));
  });
});

afterEach(() => {
  notifications.clean();
  useLastWrite.setState({ last: null });
  vi.unstubAllGlobals();
});

function start() {
  const queries = new QueryClient();
  queries.setQueryData(["me"], adminMe());
  const onClose = vi.fn();
  render(
    <InPage queries={queries}>
      <UndoDialog onClose={onClose} />
    </InPage>,
  );
  return onClose;
}

it("undoes the last change set that the user applied, after asking", async () => {
  changes = [changeRow({ id: 7, state: "applied", title: "Lower vision" })];
  const onClose = start();
  expect(await screen.findByText(/“Lower vision”, applied/)).toBeTruthy();
  expect(written).toEqual([]);
  fireEvent.click(screen.getByRole("button", { name: UNDO.button }));
  expect(onClose).toHaveBeenCalled();
  await waitFor(() =>
    expect(written).toEqual(["/changes/7:revert", "/changes/9:preview", "/changes/9:apply"]),
  );
});

it("undoes the last write of this tab rather than an older change set", async () => {
  const makeDraft = vi.fn(async () => changeRow({ id: 9 }));
  useLastWrite.setState({ last: { text: "Queue vision was saved.", makeDraft } });
  start();
  expect(screen.getByText("Queue vision was saved.")).toBeTruthy();
  fireEvent.click(screen.getByRole("button", { name: UNDO.button }));
  await waitFor(() => expect(written).toEqual(["/changes/9:preview", "/changes/9:apply"]));
  expect(makeDraft).toHaveBeenCalledTimes(1);
  expect(useLastWrite.getState().last).toBeNull();
});

it("says that there is nothing to undo", async () => {
  start();
  expect(await screen.findByText(`${UNDO.nothingTitle}.`)).toBeTruthy();
  expect(screen.queryByRole("button", { name: UNDO.button })).toBeNull();
});

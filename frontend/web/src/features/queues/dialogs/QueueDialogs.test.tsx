import { notifications } from "@mantine/notifications";
import { act, fireEvent, render, screen, waitFor, within } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { useLastWrite } from "../../../editing/useUndo.ts";
import { DRAFT } from "../../../i18n/changes.ts";
import { PREVIEW } from "../../../i18n/preview.ts";
import { DELETE_QUEUE, MOVE_QUEUE, NEW_QUEUE } from "../../../i18n/queues.ts";
import type { Queue } from "../../../model/rows.ts";
import { changeRow } from "../../../testing/changes.ts";
import { InPage } from "../../../testing/InPage.tsx";
import { adminMe } from "../../../testing/me.ts";
import { previewAnswer, queueRow, simulated } from "../../../testing/rows.ts";
import { type QueueAction, QueueDialogs } from "./QueueDialogs.tsx";

const ADMIN = adminMe();
const RESEARCH = queueRow({ name: "research" });
const VISION = queueRow({
  name: "vision",
  parent: "research",
  quota: { gpu: 6 },
  limit: { gpu: 9 },
});
const DETECTOR = queueRow({ name: "detector", parent: "vision" });
const QUEUES = new Map([RESEARCH, VISION, DETECTOR].map((queue) => [queue.name, queue]));
vi.setConfig({ testTimeout: 30_000 });

type Sent = { method: string; url: string; body: unknown };
let sent: Sent[];
let refusal: Response | null;
/** What happens on the server before the answer to a write is sent. */
let beforeAnswer: () => void;

beforeEach(() => {
  sent = [];
  refusal = null;
  beforeAnswer = () => {};
  vi.stubGlobal("fetch", async (url: string, init: RequestInit) => {
    if (init.method === "GET") return new Promise<Response>(() => {});
    const body: unknown = init.body === undefined ? null : JSON.parse(String(init.body));
    if (url.endsWith("/simulations")) return Response.json(simulated(previewAnswer({})));
    if (url.endsWith("dryRun=true")) {
      return refusal?.clone() ?? Response.json({ queue: null, warnings: [], changed: true });
    }
    if (url.endsWith("/changes")) {
      sent.push({ method: init.method ?? "", url, body });
      return Response.json(changeRow({}), { status: 201 });
    }
    sent.push({ method: init.method ?? "", url, body });
    beforeAnswer();
    return init.method === "DELETE"
      ? new Response(null, { status: 204 })
      : Response.json({ queue: null, warnings: [], changed: true });
  });
});

afterEach(() => {
  notifications.clean();
  localStorage.clear();
  vi.unstubAllGlobals();
});

function start(action: QueueAction) {
  const onDone = vi.fn();
  const dialogs = (queues: ReadonlyMap<string, Queue>) => (
    <InPage>
      <QueueDialogs action={action} queues={queues} me={ADMIN} onDone={onDone} />
    </InPage>
  );
  const { rerender } = render(dialogs(QUEUES));
  const rowsArrive = (rows: readonly Queue[]) =>
    act(() => rerender(dialogs(new Map(rows.map((row) => [row.name, row])))));
  return { onDone, rowsArrive };
}

const dialog = (title: string) => within(screen.getByRole("form", { name: title }));
const button = (title: string, text: string) =>
  dialog(title).getByRole<HTMLButtonElement>("button", { name: text });

describe("QueueDialogs", () => {
  it("creates a queue below the given parent with what differs from the defaults", async () => {
    const { onDone } = start({ kind: "create", queue: "vision" });
    const form = dialog(NEW_QUEUE.title);
    expect(button(NEW_QUEUE.title, NEW_QUEUE.submit).disabled).toBe(true);
    fireEvent.change(form.getByLabelText(/^Name/), { target: { value: "segmenter" } });
    fireEvent.change(form.getByLabelText("GPU quota"), { target: { value: "2" } });
    fireEvent.click(button(NEW_QUEUE.title, NEW_QUEUE.submit));
    await waitFor(() => expect(onDone).toHaveBeenCalledWith("segmenter"));
    expect(sent).toEqual([
      {
        method: "POST",
        url: "/api/v1/queues",
        body: { name: "segmenter", parent: "vision", quota: { gpu: 2 } },
      },
    ]);
  });

  it("shows the server's verdict at the field, and does not send what it would refuse", async () => {
    const message = "expected a name without capital letters";
    refusal = Response.json(
      {
        type: "/problems/validation",
        title: "Not valid",
        status: 422,
        detail: message,
        errors: [{ pointer: "/name", code: "name", message }],
      },
      { status: 422 },
    );
    start({ kind: "create", queue: null });
    fireEvent.change(dialog(NEW_QUEUE.title).getByLabelText(/^Name/), { target: { value: "Ab" } });
    await screen.findByText(message);
    expect(button(NEW_QUEUE.title, NEW_QUEUE.submit).disabled).toBe(true);
  });

  it("adds the same write to the draft instead of making it", async () => {
    const { onDone } = start({ kind: "create", queue: "vision" });
    fireEvent.change(dialog(NEW_QUEUE.title).getByLabelText(/^Name/), {
      target: { value: "segmenter" },
    });
    fireEvent.click(button(NEW_QUEUE.title, DRAFT.add));
    await waitFor(() => expect(onDone).toHaveBeenCalledWith());
    const edit = { name: "segmenter", action: "create", edit: { parent: "vision" } };
    expect(sent).toEqual([
      {
        method: "POST",
        url: "/api/v1/changes",
        body: { title: "Edit segmenter", edits: [edit] },
      },
    ]);
  });

  it("duplicates a queue with its amounts and its parent", async () => {
    const { onDone } = start({ kind: "duplicate", queue: "vision" });
    fireEvent.change(dialog(NEW_QUEUE.title).getByLabelText(/^Name/), {
      target: { value: "copy" },
    });
    fireEvent.click(button(NEW_QUEUE.title, NEW_QUEUE.submit));
    await waitFor(() => expect(onDone).toHaveBeenCalledWith("copy"));
    expect(sent[0]?.body).toMatchObject({
      name: "copy",
      parent: "research",
      quota: { gpu: 6 },
      limit: { gpu: 9 },
    });
  });

  it("offers no place inside the moved queue, and sends only the new parent", async () => {
    const { onDone } = start({ kind: "move", queue: "vision" });
    const title = MOVE_QUEUE.title("vision");
    expect(screen.getByText(MOVE_QUEUE.text(1))).toBeTruthy();
    fireEvent.click(dialog(title).getByRole("combobox", { name: NEW_QUEUE.parent }));
    expect(screen.queryByRole("option", { name: "detector", hidden: true })).toBeNull();
    fireEvent.click(screen.getByRole("option", { name: NEW_QUEUE.topLevel, hidden: true }));
    await screen.findByText(PREVIEW.verdicts.safe);
    fireEvent.click(button(title, MOVE_QUEUE.submit));
    await waitFor(() => expect(onDone).toHaveBeenCalledWith());
    expect(sent).toEqual([
      { method: "PATCH", url: "/api/v1/queues/vision", body: { parent: null } },
    ]);
  });

  it("deletes a queue only after the server's verdict, and shows why it would refuse", async () => {
    const { onDone } = start({ kind: "delete", queue: "detector" });
    const title = DELETE_QUEUE.title("detector");
    expect(button(title, DELETE_QUEUE.submit).disabled).toBe(true);
    await waitFor(() => expect(button(title, DELETE_QUEUE.submit).disabled).toBe(false));
    fireEvent.click(button(title, DELETE_QUEUE.submit));
    await waitFor(() => expect(onDone).toHaveBeenCalledWith(null));
    expect(sent).toEqual([{ method: "DELETE", url: "/api/v1/queues/detector", body: null }]);
  });

  it("deletes a queue with workloads only after its name was typed; a draft needs no name", async () => {
    const { rowsArrive } = start({ kind: "delete", queue: "detector" });
    rowsArrive([RESEARCH, VISION, { ...DETECTOR, totalWorkloads: 2 }]);
    const title = DELETE_QUEUE.title("detector");
    await waitFor(() => expect(button(title, DRAFT.add).disabled).toBe(false));
    expect(button(title, DELETE_QUEUE.submit).disabled).toBe(true);
    const name = screen.getByLabelText(DELETE_QUEUE.typed("detector"));
    fireEvent.change(name, { target: { value: "detect" } });
    expect(button(title, DELETE_QUEUE.submit).disabled).toBe(true);
    fireEvent.change(name, { target: { value: "detector" } });
    fireEvent.click(button(title, DELETE_QUEUE.submit));
    await waitFor(() => expect(sent).toHaveLength(1));
  });

  it.each([
    ["is gone", []],
    ["was created anew", [queueRow({ name: "vision" })]],
  ])(
    "undoes a deletion by the row as it was, also if that %s before the answer",
    async (_, rows) => {
      const { onDone, rowsArrive } = start({ kind: "delete", queue: "vision" });
      const title = DELETE_QUEUE.title("vision");
      await waitFor(() => expect(button(title, DELETE_QUEUE.submit).disabled).toBe(false));
      beforeAnswer = () => rowsArrive([RESEARCH, DETECTOR, ...rows]);
      fireEvent.click(button(title, DELETE_QUEUE.submit));
      await waitFor(() => expect(onDone).toHaveBeenCalledWith(null));
      await useLastWrite.getState().last?.makeDraft();
      const edit = { parent: "research", quota: { gpu: 6 }, limit: { gpu: 9 } };
      expect(sent[1]?.body).toMatchObject({ edits: [{ name: "vision", action: "create", edit }] });
    },
  );

  it("undoes a move to the parent that the queue had when it was moved", async () => {
    const { onDone, rowsArrive } = start({ kind: "move", queue: "detector", target: null });
    const title = MOVE_QUEUE.title("detector");
    rowsArrive([RESEARCH, VISION, { ...DETECTOR, parent: "research", etag: '"2"' }]);
    await screen.findByText(PREVIEW.verdicts.safe);
    beforeAnswer = () => rowsArrive([RESEARCH, VISION, { ...DETECTOR, parent: null, etag: '"3"' }]);
    fireEvent.click(button(title, MOVE_QUEUE.submit));
    await waitFor(() => expect(onDone).toHaveBeenCalledWith());
    await useLastWrite.getState().last?.makeDraft();
    const edit = { parent: "research" };
    expect(sent[1]?.body).toMatchObject({ edits: [{ name: "detector", action: "update", edit }] });
  });
});

import { notifications } from "@mantine/notifications";
import { act, fireEvent, render, screen, within } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { API_TEXT } from "../../../i18n/api.ts";
import { PREVIEW } from "../../../i18n/preview.ts";
import { FORM } from "../../../i18n/queues.ts";
import type { Queue } from "../../../model/rows.ts";
import { InPage } from "../../../testing/InPage.tsx";
import { silentLive } from "../../../testing/live.ts";
import { previewAnswer, queueRow, simulated } from "../../../testing/rows.ts";
import { QueueDrawer } from "./QueueDrawer.tsx";

const queue = queueRow({ name: "a", quota: { gpu: 8 }, etag: '"5"' });
const saved = { ...queue, quota: { gpu: 12 }, etag: '"6"' };
// Rendering the whole form is slow on a busy machine.
vi.setConfig({ testTimeout: 30_000 });

let simulation: object;
let answerWrite: (response: Response) => void;
let failWrite: (error: Error) => void;

beforeEach(() => {
  vi.useFakeTimers({ shouldAdvanceTime: true });
  simulation = simulated(previewAnswer({}));
  vi.stubGlobal("fetch", (url: string, init: RequestInit) => {
    if (init.method === "GET") return new Promise(() => {});
    if (url.endsWith("/simulations")) return Promise.resolve(Response.json(simulation));
    if (url.endsWith("dryRun=true")) {
      return Promise.resolve(Response.json({ queue, warnings: [], changed: true }));
    }
    return new Promise<Response>((resolve, reject) => {
      answerWrite = resolve;
      failWrite = reject;
    });
  });
});

afterEach(() => {
  notifications.clean();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

function start({ live } = silentLive()) {
  const drawer = (row: Queue, name: string | null = row.name) => (
    <InPage live={live}>
      <QueueDrawer
        name={name}
        queue={row}
        rights={{ edit: true, place: true, anywhere: true, admin: true }}
        onAction={() => {}}
        onClose={() => {}}
      />
    </InPage>
  );
  const view = render(drawer(queue));
  return {
    show: (row: Queue) => view.rerender(drawer(row)),
    close: () => view.rerender(drawer(queue, null)),
  };
}

const form = () => within(screen.getByRole("form", { name: "Edit a" }));
const status = () => form().getByRole("status").textContent;
const save = () => form().getByRole<HTMLButtonElement>("button", { name: FORM.save });
const undo = () => form().getByRole<HTMLButtonElement>("button", { name: FORM.undo });
const typeQuota = (text: string) =>
  fireEvent.change(form().getByLabelText("GPU quota"), { target: { value: text } });
const pass = (ms: number) => act(() => vi.advanceTimersByTimeAsync(ms));

describe("QueueDrawer", () => {
  it("has a text for every step of saving, and reports the save when the row has arrived", async () => {
    const { show } = start();
    expect([status(), save().disabled]).toEqual([FORM.noChanges, true]);
    typeQuota("12");
    expect([status(), save().disabled]).toEqual(["1 field changed", false]);
    fireEvent.click(save());
    await pass(0);
    expect(status()).toBe(FORM.saving);
    await pass(10_000);
    expect(status()).toBe(FORM.savingSlow);
    answerWrite(Response.json({ queue: saved, warnings: [], changed: true }));
    await pass(0);
    expect(status()).toBe(FORM.awaiting);
    await pass(10_000);
    expect(status()).toBe(FORM.awaitingSlow);
    show(saved);
    expect(status()).toBe(FORM.noChanges);
    expect(screen.getByText(FORM.savedText("a"))).toBeTruthy();
  });

  it("can be edited and saved again before the live row shows the first save", async () => {
    start();
    typeQuota("12");
    fireEvent.click(save());
    await pass(0);
    answerWrite(Response.json({ queue: saved, warnings: [], changed: true }));
    await pass(0);
    typeQuota("13");
    expect([status(), save().disabled]).toEqual(["1 field changed", false]);
    fireEvent.click(save());
    await pass(0);
    expect(status()).toBe(FORM.saving);
  });

  it("shows why a save failed and can be saved again", async () => {
    start();
    typeQuota("12");
    fireEvent.click(save());
    await pass(0);
    failWrite(new DOMException("signal timed out", "TimeoutError"));
    await pass(0);
    expect(screen.getByRole("alert").textContent).toBe(API_TEXT.noAnswer + API_TEXT.timeout);
    expect([status(), save().disabled]).toEqual(["1 field changed", false]);
  });

  it("says that a field must be corrected, and undoes it", () => {
    start();
    typeQuota("8x");
    expect([status(), save().disabled, undo().disabled]).toEqual([
      "Correct 1 field before saving",
      true,
      false,
    ]);
    fireEvent.click(undo());
    expect([status(), undo().disabled]).toEqual([FORM.noChanges, true]);
  });

  it("says who manages a locked queue", () => {
    const { show } = start();
    show({ ...queue, managedBy: "Argo CD" });
    expect(screen.getByText("Argo CD manages this queue. Edit it there.")).toBeTruthy();
    expect(form().getByLabelText<HTMLInputElement>("GPU quota").disabled).toBe(true);
  });

  it("is locked while the data shown is out of date", async () => {
    const connection = silentLive();
    const { live, wire } = connection;
    start(connection);
    expect(form().getByLabelText<HTMLInputElement>("GPU quota").disabled).toBe(false);
    act(() => {
      live.start();
      wire.onopen?.();
      const welcome = {
        t: "welcome",
        conn: "c",
        rights: "r",
        time: "2026-01-01T00:00:00Z",
        hb: 20,
      };
      const beat = { t: "hb", asOf: { time: null, session: null, rv: null } };
      for (const frame of [welcome, beat]) wire.onmessage?.({ data: JSON.stringify(frame) });
    });
    await pass(61_000);
    expect(form().getByText(FORM.stale)).toBeTruthy();
    expect(form().getByLabelText<HTMLInputElement>("GPU quota").disabled).toBe(true);
  });

  it("gives the focus back when it closes, also if it was drawn open", async () => {
    const row = document.body.appendChild(document.createElement("button"));
    row.focus();
    const { close } = start();
    await pass(1000);
    act(() => form().getByLabelText("GPU quota").focus());
    close();
    await pass(1000);
    expect(document.activeElement).toBe(row);
    row.remove();
  });

  it("asks before it saves what evicts pods, and says by which rule for whom", async () => {
    const eviction = {
      cycle: 1,
      workload: "team/train",
      pod: "team/train-0",
      queue: "a",
      node: "n1",
      gpu: 2,
      action: "reclaim",
      withoutEdits: false,
      evictor: "other/asker",
      evictorQueue: "b",
      rule: "Preempted to reclaim resources",
      runTimeSeconds: 60,
    };
    simulation = simulated(previewAnswer({ verdict: "evicts", evictions: [eviction] }));
    start();
    typeQuota("1");
    fireEvent.click(save());
    await pass(0);
    const dialog = within(screen.getByRole("dialog", { name: PREVIEW.confirmTitle }));
    expect(dialog.getByText("team/train")).toBeTruthy();
    expect(dialog.getByText(PREVIEW.evictor("other/asker"))).toBeTruthy();
    expect(dialog.getByText("Preempted to reclaim resources")).toBeTruthy();
    expect(status()).toBe("1 field changed");
    fireEvent.click(dialog.getByRole("button", { name: PREVIEW.confirm }));
    expect(status()).toBe(FORM.saving);
  });

  it("asks before it saves what could not be previewed", async () => {
    simulation = { ...simulated(previewAnswer({})), state: "failed", answer: null, error: "lost" };
    start();
    typeQuota("1");
    fireEvent.click(save());
    await pass(0);
    const dialog = within(screen.getByRole("dialog", { name: PREVIEW.unavailable }));
    expect(dialog.getByText("lost")).toBeTruthy();
    fireEvent.click(dialog.getByRole("button", { name: PREVIEW.back }));
    expect(status()).toBe("1 field changed");
  });
});

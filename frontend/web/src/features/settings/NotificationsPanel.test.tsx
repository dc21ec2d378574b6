import { fireEvent, render, screen, waitFor, within } from "@testing-library/react";
import { beforeEach, expect, it, vi } from "vitest";
import { NOTIFICATIONS } from "../../i18n/notifications.ts";
import type { Notification } from "../../model/rows.ts";
import { InPage } from "../../testing/InPage.tsx";
import { NotificationsPanel } from "./NotificationsPanel.tsx";

const OPS: Notification = {
  id: 7,
  name: "ops",
  url: "https://hooks.example/T0/secret-path",
  hasSecret: true,
  events: ["workloadEvicted"],
  subtree: null,
  waitMinutes: 30,
  report: "monthly",
  enabled: true,
  createdAt: "2026-12-01T10:00:00.000Z",
  failures: 2,
  nextTryAt: "2026-12-01T10:05:00.000Z",
  pending: 3,
  lastDelivery: {
    id: "msg_1",
    event: "workloadEvicted",
    state: "pending",
    attempts: 2,
    createdAt: "2026-12-01T10:01:00.000Z",
    finishedAt: null,
    status: 500,
    error: "answered 500",
  },
  etag: '"7-1"',
};
let items: Notification[];
let sent: { method: string; path: string; body: Record<string, unknown>; tag: unknown }[];

beforeEach(() => {
  items = [OPS];
  sent = [];
  vi.stubGlobal("fetch", async (path: string, init: RequestInit) => {
    if (init.method === "GET") return Response.json({ items });
    const tag = (init.headers as Record<string, string>)["If-Match"];
    const body = init.body === undefined ? {} : JSON.parse(String(init.body));
    sent.push({ method: String(init.method), path, body, tag });
    return init.method === "DELETE"
      ? new Response(null, { status: 204 })
      : Response.json({ ...OPS, ...body });
  });
});

function draw() {
  render(
    <InPage>
      <NotificationsPanel />
    </InPage>,
  );
}

function press(name: string) {
  fireEvent.click(screen.getByRole("button", { name }));
}

it("shows how the last delivery ended, and no path of the address", async () => {
  draw();
  expect(await screen.findByText("answered 500")).toBeTruthy();
  expect(screen.getByText(new RegExp(NOTIFICATIONS.waiting(3)))).toBeTruthy();
  expect(screen.getByText("hooks.example")).toBeTruthy();
  expect(screen.queryByText(/secret-path/)).toBeNull();
});

it("an admin creates a webhook with a generated secret", async () => {
  items = [];
  draw();
  await screen.findByText(NOTIFICATIONS.emptyTitle);
  press(NOTIFICATIONS.create);
  const form = await screen.findByRole("form", { name: NOTIFICATIONS.create });
  const field = (name: RegExp) => within(form).getByRole("textbox", { name });
  const submit = within(form).getByRole<HTMLButtonElement>("button", {
    name: NOTIFICATIONS.submit,
  });
  fireEvent.change(field(/^Name/), { target: { value: "pager" } });
  fireEvent.change(field(/^URL/), { target: { value: "https://pager.example/x" } });
  expect(submit.disabled).toBe(true);
  fireEvent.click(within(form).getByLabelText(NOTIFICATIONS.eventTexts.workloadWaits));
  fireEvent.change(field(/Too long/), { target: { value: "0" } });
  expect(within(form).getByText(NOTIFICATIONS.waitWrong)).toBeTruthy();
  expect(submit.disabled).toBe(true);
  fireEvent.change(field(/Too long/), { target: { value: "45" } });
  fireEvent.click(within(form).getByRole("button", { name: NOTIFICATIONS.generate }));
  fireEvent.click(submit);
  await screen.findByText(NOTIFICATIONS.created);
  expect(sent).toHaveLength(1);
  expect(sent[0]?.body).toMatchObject({
    name: "pager",
    events: ["workloadWaits"],
    waitMinutes: 45,
    secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/),
  });
});

it("an edit leaves the secret as it is, unless it is removed", async () => {
  draw();
  await screen.findByText("answered 500");
  press(NOTIFICATIONS.editOf("ops"));
  let form = await screen.findByRole("form");
  fireEvent.click(within(form).getByRole("switch", { name: NOTIFICATIONS.enabled }));
  fireEvent.click(within(form).getByRole("button", { name: NOTIFICATIONS.save }));
  await waitFor(() => expect(screen.queryByRole("form")).toBeNull());
  expect(sent[0]).toMatchObject({ path: "/api/v1/notifications/7", tag: '"7-1"' });
  expect(sent[0]?.body).toMatchObject({ enabled: false });
  expect(sent[0]?.body).not.toHaveProperty("secret");
  press(NOTIFICATIONS.editOf("ops"));
  form = await screen.findByRole("form");
  fireEvent.click(within(form).getByLabelText(NOTIFICATIONS.removeSecret));
  fireEvent.click(within(form).getByRole("button", { name: NOTIFICATIONS.save }));
  await waitFor(() => expect(sent).toHaveLength(2));
  expect(sent[1]?.body).toMatchObject({ secret: null });
});

it("a test is sent, and a webhook is deleted after asking", async () => {
  draw();
  await screen.findByText("answered 500");
  press(NOTIFICATIONS.testOf("ops"));
  await screen.findByText(NOTIFICATIONS.testSent);
  press(NOTIFICATIONS.deleteOf("ops"));
  const dialog = await screen.findByRole("dialog");
  fireEvent.click(within(dialog).getByRole("button", { name: NOTIFICATIONS.delete }));
  await screen.findByText(NOTIFICATIONS.deleted);
  expect(sent.map(({ method, path }) => [method, path])).toEqual([
    ["POST", "/api/v1/notifications/7:test"],
    ["DELETE", "/api/v1/notifications/7"],
  ]);
});

import { MantineProvider } from "@mantine/core";
import { Notifications, notifications } from "@mantine/notifications";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { fireEvent, render, screen, waitFor } from "@testing-library/react";
import { createMemoryRouter, RouterProvider } from "react-router";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { CHANGE, CHANGES, DRAFT, UNDO } from "../../i18n/changes.ts";
import { PREVIEW } from "../../i18n/preview.ts";
import { LiveProvider } from "../../live/react.tsx";
import type { Change, Me, Preview } from "../../model/rows.ts";
import { changeRow } from "../../testing/changes.ts";
import { silentLive } from "../../testing/live.ts";
import { adminMe, editorMe } from "../../testing/me.ts";
import { previewAnswer, simulated } from "../../testing/rows.ts";
import { ChangePage } from "./ChangePage.tsx";

vi.setConfig({ testTimeout: 30_000 });

const DIFF = [{ pointer: "/quota/gpu", before: 8, after: 4 }];
const DRAFTED = changeRow({
  edits: [{ name: "a", edit: { quota: { gpu: 4 } } }],
  plan: [{ queue: "a", action: "update", diff: DIFF }],
});
const STEP = { number: 1, queue: "a", action: "update", state: "done", error: null, diff: DIFF };
const APPLIED = { ...DRAFTED, state: "applied", plan: [], steps: [STEP] } as Change;

let change: Change;
let answer: Preview;
let sent: string[];
let refusal: Response | null;
/** What the server waits for before it stores texts. */
let storing: Promise<void>;

/** A server with one change set, which it previews, applies and undoes. */
async function serve(me: Me, path: string, init: RequestInit): Promise<Response> {
  const body = init.body === undefined ? "" : ` ${String(init.body)}`;
  if (init.method !== "GET") sent.push(`${init.method} ${path}${body}`);
  if (path === "/me") return Response.json(me);
  if (path.startsWith("/simulations")) return Response.json(simulated(answer));
  if (path.endsWith(":preview")) change = { ...change, preview: 1 };
  if (path.endsWith(":apply")) {
    if (refusal !== null) return refusal;
    change = { ...APPLIED, id: change.id };
  }
  if (path.endsWith(":revert")) change = { ...DRAFTED, id: 8, reverts: 7 };
  if (path.endsWith(":request")) change = { ...change, state: "requested" };
  if (init.method === "PATCH") {
    await storing;
    change = { ...change, stale: [] };
  }
  if (init.method === "DELETE") return new Response(null, { status: 204 });
  return Response.json(change);
}

beforeEach(() => {
  change = DRAFTED;
  answer = previewAnswer({});
  sent = [];
  refusal = null;
  storing = Promise.resolve();
});

afterEach(() => {
  notifications.clean();
  vi.unstubAllGlobals();
});

function start(me = adminMe()) {
  vi.stubGlobal("fetch", (url: string, init: RequestInit) =>
    serve(me, url.replace("/api/v1", ""), init),
  );
  const routes = [
    { path: "/changes/:id", Component: ChangePage },
    { path: "/changes", element: CHANGES.title },
  ];
  const router = createMemoryRouter(routes, { initialEntries: ["/changes/7"] });
  render(
    <MantineProvider env="test">
      <Notifications />
      <QueryClientProvider client={new QueryClient()}>
        <LiveProvider client={silentLive().live}>
          <RouterProvider router={router} />
        </LiveProvider>
      </QueryClientProvider>
    </MantineProvider>,
  );
  return router;
}

const button = (name: string) => screen.findByRole<HTMLButtonElement>("button", { name });
const press = async (name: string) => {
  const target = await button(name);
  await waitFor(() => expect(target.disabled).toBe(false));
  fireEvent.click(target);
};

it("shows each field before and after, and applies what evicts nothing at one press", async () => {
  start();
  await screen.findByRole("row", { name: "GPU quota 8 GPUs 4 GPUs" });
  await press(CHANGE.apply);
  await screen.findByText(CHANGE.progress(1, 1));
  expect(sent).toEqual([
    "POST /changes/7:preview",
    'POST /changes/7:apply {"preview":1,"reason":""}',
  ]);
});

it("applies once the reason, which is saved by leaving its field, is stored", async () => {
  let store = () => {};
  storing = new Promise((resolve) => {
    store = resolve;
  });
  start();
  const reason = await screen.findByLabelText(CHANGE.reason);
  fireEvent.change(reason, { target: { value: "for the deadline" } });
  fireEvent.blur(reason);
  await press(CHANGE.apply);
  await waitFor(() => expect(sent).toContain("POST /changes/7:preview"));
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(sent.filter((request) => request.includes(":apply"))).toEqual([]);
  store();
  await screen.findByText(CHANGE.progress(1, 1));
  expect(sent[0]).toBe('PATCH /changes/7 {"reason":"for the deadline"}');
});

it("what evicts is shown first, and applied only with a reason", async () => {
  const totals = { ...previewAnswer({}).totals, evictedPods: 3 };
  answer = previewAnswer({ verdict: "evicts", totals });
  start();
  await press(CHANGE.apply);
  const evict = await button(CHANGE.applyAndEvict(3));
  expect(screen.getByText(PREVIEW.verdicts.evicts)).toBeTruthy();
  expect(evict.disabled).toBe(true);
  expect(sent).toEqual(["POST /changes/7:preview"]);
  fireEvent.change(screen.getByLabelText(CHANGE.reason), { target: { value: "maintenance" } });
  await press(CHANGE.applyAndEvict(3));
  await screen.findByText(CHANGE.progress(1, 1));
  expect(sent.at(-1)).toBe('POST /changes/7:apply {"preview":1,"reason":"maintenance"}');
});

it("undo from the notification applies the reverse change set", async () => {
  start();
  await press(CHANGE.apply);
  await press(UNDO.button);
  await screen.findByText(UNDO.doneText);
  expect(sent.slice(-3)).toEqual([
    "POST /changes/7:revert",
    "POST /changes/8:preview",
    'POST /changes/8:apply {"preview":1}',
  ]);
});

it("an undo that would evict is opened for review instead", async () => {
  change = APPLIED;
  answer = previewAnswer({ verdict: "evicts" });
  const router = start();
  await press(CHANGE.undo);
  await waitFor(() => expect(router.state.location.pathname).toBe("/changes/8"));
  expect(sent).toEqual(["POST /changes/7:revert", "POST /changes/8:preview"]);
});

it("edits of others are named, and their values accepted before anything is applied", async () => {
  change = { ...DRAFTED, stale: ["a"] };
  start();
  expect(await screen.findByText(CHANGE.stale("a"))).toBeTruthy();
  expect((await button(CHANGE.apply)).disabled).toBe(true);
  await press(CHANGE.acceptCurrent);
  await waitFor(async () => expect((await button(CHANGE.apply)).disabled).toBe(false));
});

it("a refused apply says why and keeps the draft", async () => {
  const problem = {
    type: "/problems/hierarchy",
    title: "No",
    status: 409,
    detail: "no such parent",
  };
  refusal = Response.json(problem, { status: 409 });
  start();
  await press(CHANGE.apply);
  expect(await screen.findByText("no such parent")).toBeTruthy();
  expect((await button(CHANGE.apply)).disabled).toBe(false);
});

it("an editor asks for approval of an edit outside the granted queues", async () => {
  change = { ...DRAFTED, author: "ed" };
  start(editorMe("elsewhere"));
  expect(await screen.findByText(CHANGE.needsApproval)).toBeTruthy();
  expect(screen.queryByRole("button", { name: CHANGE.apply })).toBeNull();
  await press(CHANGE.request);
  await screen.findByText(CHANGE.requestedText);
  expect(screen.queryByRole("button", { name: CHANGE.deleteDraft })).toBeNull();
});

it("removing the last edit deletes the draft", async () => {
  const router = start();
  await press(CHANGE.remove("a"));
  await waitFor(() => expect(sent).toEqual(["DELETE /changes/7"]));
  await waitFor(() => expect(router.state.location.pathname).toBe("/changes"));
  expect(screen.queryByText(DRAFT.discard)).toBeNull();
});

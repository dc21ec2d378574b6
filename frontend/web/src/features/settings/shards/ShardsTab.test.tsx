import { notifications } from "@mantine/notifications";
import { QueryClient } from "@tanstack/react-query";
import { fireEvent, render, screen, waitFor, within } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { SHARDS_KEY } from "../../../api/shards.ts";
import { UNDO } from "../../../i18n/changes.ts";
import { SHARD, SHARD_REVIEW, SHARDS } from "../../../i18n/shards.ts";
import type { Me, Shard, ShardSettings } from "../../../model/rows.ts";
import { InPage } from "../../../testing/InPage.tsx";
import { adminMe, editorMe } from "../../../testing/me.ts";
import { ShardsTab } from "./ShardsTab.tsx";

vi.setConfig({ testTimeout: 30_000 });

const SHARD_ROW: Shard = {
  name: "default",
  partitionLabelValue: "",
  spec: { kValue: 1 },
  problem: "",
  conditions: [],
  createdAt: "2026-01-01T00:00:00Z",
  generation: 1,
  etag: "1-a",
};
const SETTINGS: ShardSettings = {
  shard: "default",
  exists: true,
  partitionLabelValue: "",
  problem: "",
  actions: [{ name: "allocate", enabled: true, priority: 500, queueDepth: null }],
  plugins: [{ name: "backfill", enabled: false, onByDefault: false, priority: 0, arguments: {} }],
  options: [
    {
      name: "schedule-period",
      kind: "duration",
      value: 2,
      default: 1,
      choices: null,
      stated: true,
    },
  ],
};

type Sent = { readonly method: string; readonly path: string; readonly body: unknown };
let shards: Shard[];
let sent: Sent[];
let refusal: object | null;
/** What happens in the cluster and this page before the answer to a write is sent. */
let beforeAnswer: () => Promise<void>;

beforeEach(() => {
  shards = [SHARD_ROW];
  sent = [];
  refusal = null;
  beforeAnswer = async () => {};
  vi.stubGlobal("fetch", async (url: string, init: RequestInit) => {
    const path = url.replace("/api/v1", "");
    if (path === "/shards" && init.method === "GET") return Response.json({ items: shards });
    if (path.startsWith("/settings")) return Response.json(SETTINGS);
    const headers = init.headers as Record<string, string>;
    const spec: unknown = JSON.parse(String(init.body));
    sent.push({ method: `${init.method} ${headers["If-Match"] ?? ""}`.trim(), path, body: spec });
    if (refusal !== null) return Response.json(refusal, { status: 422 });
    if (!path.endsWith("dryRun=true")) await beforeAnswer();
    const diff = [{ pointer: "/spec/plugins/backfill/enabled", before: null, after: true }];
    return Response.json({ shard: SHARD_ROW, changed: true, dryRun: true, warnings: [], diff });
  });
});

afterEach(() => {
  notifications.clean();
  vi.unstubAllGlobals();
});

async function start(me: Me) {
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  queries.setQueryData(["me"], me);
  render(
    <InPage queries={queries}>
      <ShardsTab name={undefined} />
    </InPage>,
  );
  await screen.findByRole("group", { name: SHARD.plugins });
  return queries;
}

const runs = (name: string) =>
  screen.getByRole<HTMLInputElement>("switch", { name: SHARD.runs(name) });
const review = () => within(screen.getByRole("form", { name: SHARD_REVIEW.title("default") }));

it("shows the difference of an edit before it is written, and names the version it edits", async () => {
  await start(adminMe());
  fireEvent.click(runs("backfill"));
  expect(screen.getByText(SHARD.changes(1))).toBeTruthy();
  fireEvent.click(screen.getByRole("button", { name: SHARD.review }));
  expect(await review().findByText("plugins/backfill/enabled")).toBeTruthy();
  await waitFor(() =>
    expect(
      review().getByRole<HTMLButtonElement>("button", { name: SHARD_REVIEW.save }).disabled,
    ).toBe(false),
  );
  fireEvent.click(review().getByRole("button", { name: SHARD_REVIEW.save }));
  await screen.findByText(SHARD_REVIEW.savedText("default"));
  const body = { spec: { plugins: { backfill: { enabled: true } } } };
  expect(sent).toEqual([
    { method: "PATCH 1-a", path: "/shards/default?dryRun=true", body },
    { method: "PATCH 1-a", path: "/shards/default", body },
  ]);
});

it("undoes a write by the settings of before, also if the page shows the new ones before the answer", async () => {
  const queries = await start(adminMe());
  fireEvent.click(runs("backfill"));
  fireEvent.click(screen.getByRole("button", { name: SHARD.review }));
  const save = review().getByRole<HTMLButtonElement>("button", { name: SHARD_REVIEW.save });
  await waitFor(() => expect(save.disabled).toBe(false));
  beforeAnswer = async () => {
    shards = [{ ...SHARD_ROW, spec: { kValue: 1, plugins: { backfill: { enabled: true } } } }];
    await queries.refetchQueries({ queryKey: SHARDS_KEY, exact: true });
  };
  fireEvent.click(save);
  fireEvent.click(await screen.findByRole("button", { name: UNDO.button }));
  await screen.findByText(SHARD_REVIEW.undoneText("default"));
  expect(sent.at(-1)).toEqual({
    method: "PUT 1-a",
    path: "/shards/default",
    body: { spec: SHARD_ROW.spec },
  });
});

it("takes an edit back when the control shows the present value again", async () => {
  await start(adminMe());
  fireEvent.click(runs("backfill"));
  fireEvent.click(runs("backfill"));
  expect(screen.queryByRole("button", { name: SHARD.review })).toBeNull();
});

it("resets an option that the shard states by removing it", async () => {
  await start(adminMe());
  fireEvent.click(screen.getByRole("button", { name: SHARD.resetOf("schedule-period") }));
  expect(screen.getByRole<HTMLInputElement>("textbox", { name: "schedule-period" }).value).toBe(
    "1s",
  );
  fireEvent.click(screen.getByRole("button", { name: SHARD.review }));
  await review().findByText("plugins/backfill/enabled");
  expect(sent[0]?.body).toEqual({ spec: { args: { "schedule-period": null } } });
});

it("says why the scheduler would refuse an edit, and does not let it be saved", async () => {
  const message = "kValue: expected a number of at least 0, got -1";
  refusal = { title: "Not valid", detail: "", errors: [{ pointer: "/spec/kValue", message }] };
  await start(adminMe());
  fireEvent.change(screen.getByRole("textbox", { name: SHARD.kValue }), {
    target: { value: "-1" },
  });
  fireEvent.click(screen.getByRole("button", { name: SHARD.review }));
  expect(await review().findByText(message)).toBeTruthy();
  expect(
    review().getByRole<HTMLButtonElement>("button", { name: SHARD_REVIEW.save }).disabled,
  ).toBe(true);
});

it("creates the object of the default shard with the first edit", async () => {
  shards = [];
  await start(adminMe());
  expect(screen.getByText(SHARDS.withoutObject)).toBeTruthy();
  fireEvent.click(runs("backfill"));
  fireEvent.click(screen.getByRole("button", { name: SHARD.review }));
  await review().findByText("plugins/backfill/enabled");
  const spec = { plugins: { backfill: { enabled: true } } };
  expect(sent[0]).toEqual({
    method: "POST",
    path: "/shards?dryRun=true",
    body: { name: "default", spec },
  });
});

it("is read only for everybody else, and says who can change it", async () => {
  await start(editorMe("vision"));
  expect(runs("backfill").disabled).toBe(true);
  expect(screen.getByText(SHARDS.adminsOnly)).toBeTruthy();
  expect(screen.queryByRole("button", { name: SHARD.json })).toBeNull();
});

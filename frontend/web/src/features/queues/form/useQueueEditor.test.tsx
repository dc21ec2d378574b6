import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, renderHook, waitFor } from "@testing-library/react";
import type { ReactNode } from "react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { API_TEXT } from "../../../i18n/api.ts";
import type { Queue } from "../../../model/rows.ts";
import { queueRow } from "../../../testing/rows.ts";
import { useQueueEditor } from "./useQueueEditor.ts";

type Call = { dryRun: boolean; etag: string; patch: unknown };

/** The server's copy of the queue; `calls` are the writes the editor tried. */
let server: Queue;
let calls: Call[];
let saved: number;

beforeEach(() => {
  server = queueRow({ name: "a", quota: { gpu: 8 }, limit: { gpu: 16 }, etag: '"5"' });
  calls = [];
  saved = 0;
  vi.stubGlobal("fetch", async (url: string, init: RequestInit) => answer(url, init));
});

afterEach(() => vi.unstubAllGlobals());

function answer(url: string, init: RequestInit): Response {
  const etag = (init.headers as Record<string, string>)["If-Match"] ?? "";
  const patch = JSON.parse(String(init.body)) as Partial<Queue>;
  const dryRun = url.endsWith("dryRun=true");
  calls.push({ dryRun, etag, patch });
  if (etag !== server.etag) {
    const problem = {
      type: "x/precondition-failed",
      title: "Changed",
      status: 412,
      detail: "",
      current: server,
    };
    return new Response(JSON.stringify(problem), { status: 412 });
  }
  const next = {
    ...server,
    quota: { ...server.quota, ...patch.quota },
    limit: { ...server.limit, ...patch.limit },
  };
  if (!dryRun) server = { ...next, etag: `"${Number(server.etag.slice(1, -1)) + 1}"` };
  return new Response(
    JSON.stringify({ queue: dryRun ? next : server, warnings: [], changed: true }),
  );
}

function start() {
  const client = new QueryClient();
  const wrapper = ({ children }: { children: ReactNode }) => (
    <QueryClientProvider client={client}>{children}</QueryClientProvider>
  );
  const onSaved = () => {
    saved += 1;
  };
  return renderHook(({ queue }) => useQueueEditor(queue, onSaved), {
    wrapper,
    initialProps: { queue: server },
  });
}

const type = (hook: ReturnType<typeof start>, text: string) =>
  act(() => hook.result.current.setEntry("/quota/gpu", { kind: "value", text }));
const writes = () => calls.filter((call) => !call.dryRun);

describe("useQueueEditor", () => {
  it("sends only what changed, and is done when the live row has arrived", async () => {
    const hook = start();
    type(hook, "12");
    expect(hook.result.current.changed).toEqual(["/quota/gpu"]);
    await act(() => hook.result.current.save());
    expect(writes()).toEqual([{ dryRun: false, etag: '"5"', patch: { quota: { gpu: 12 } } }]);
    expect([saved, hook.result.current.phase.kind]).toEqual([0, "awaited"]);
    hook.rerender({ queue: server });
    expect([saved, hook.result.current.phase.kind, hook.result.current.changed]).toEqual([
      1,
      "clean",
      [],
    ]);
  });

  it("does not fall back to an older row that arrives after saving", async () => {
    const hook = start();
    const old = server;
    type(hook, "12");
    await act(() => hook.result.current.save());
    hook.rerender({ queue: { ...old, pendingWorkloads: 3 } });
    expect(hook.result.current.entries.get("/quota/gpu")?.text).toBe("12");
  });

  it("saves twice in a row without waiting for the live row, and reports every save once", async () => {
    const hook = start();
    type(hook, "12");
    await act(() => hook.result.current.save());
    type(hook, "13");
    await act(() => hook.result.current.save());
    expect(writes().map(({ etag, patch }) => [etag, patch])).toEqual([
      ['"5"', { quota: { gpu: 12 } }],
      ['"6"', { quota: { gpu: 13 } }],
    ]);
    hook.rerender({ queue: server });
    hook.rerender({ queue: { ...server, pendingWorkloads: 1 } });
    expect([saved, hook.result.current.phase.kind]).toEqual([1, "clean"]);
    type(hook, "14");
    await act(() => hook.result.current.save());
    hook.rerender({ queue: server });
    expect([saved, server.quota.gpu]).toEqual([2, 14]);
  });

  it("reports a slow save even while the live row keeps changing", async () => {
    vi.useFakeTimers();
    try {
      const hook = start();
      type(hook, "12");
      await act(() => hook.result.current.save());
      for (let second = 0; second < 11; second++) {
        act(() => vi.advanceTimersByTime(1_000));
        hook.rerender({ queue: { ...server, etag: '"5"', pendingWorkloads: second } });
      }
      expect(hook.result.current.phase).toMatchObject({ kind: "awaited", isSlow: true });
    } finally {
      vi.useRealTimers();
    }
  });

  it("is editable again after a request that failed", async () => {
    const hook = start();
    type(hook, "12");
    vi.stubGlobal("fetch", async () => {
      throw new DOMException("signal timed out", "TimeoutError");
    });
    await act(() => hook.result.current.save());
    expect(hook.result.current.phase.kind).toBe("editing");
    expect(hook.result.current.failure).toEqual({
      title: "No answer from the server",
      detail: API_TEXT.timeout,
    });
  });

  it("tries again by itself when only the status had moved the version", async () => {
    const hook = start();
    type(hook, "12");
    server = { ...server, etag: '"9"', pendingWorkloads: 4 };
    await act(() => hook.result.current.save());
    expect(writes().map((call) => call.etag)).toEqual(['"5"', '"9"']);
    expect(server.quota.gpu).toBe(12);
    expect(hook.result.current.conflict).toBeNull();
  });

  it("keeps what others wrote to other fields", async () => {
    const hook = start();
    type(hook, "12");
    server = { ...server, etag: '"9"', limit: { gpu: 40 } };
    await act(() => hook.result.current.save());
    expect([server.quota.gpu, server.limit.gpu]).toEqual([12, 40]);
    expect(writes().at(-1)?.patch).toEqual({ quota: { gpu: 12 } });
  });

  it("shows others' values in fields not touched, while editing", () => {
    const hook = start();
    type(hook, "12");
    hook.rerender({ queue: { ...server, etag: '"9"', limit: { gpu: 40 } } });
    expect(hook.result.current.entries.get("/limit/gpu")?.text).toBe("40");
    expect(hook.result.current.entries.get("/quota/gpu")?.text).toBe("12");
    expect(hook.result.current.changed).toEqual(["/quota/gpu"]);
  });

  it("asks when both changed the same field, and saves the choice against their version", async () => {
    const hook = start();
    type(hook, "12");
    server = { ...server, etag: '"9"', quota: { gpu: 10 } };
    await act(() => hook.result.current.save());
    const conflict = hook.result.current.conflict;
    expect([conflict?.pointers, server.quota.gpu]).toEqual([["/quota/gpu"], 10]);
    await act(async () => hook.result.current.resolve(new Map([["/quota/gpu", 12]])));
    await waitFor(() => expect(server.quota.gpu).toBe(12));
    expect(writes().at(-1)).toEqual({ dryRun: false, etag: '"9"', patch: { quota: { gpu: 12 } } });
    expect(hook.result.current.conflict).toBeNull();
  });

  it("asks the server while typing, once the text stands still", async () => {
    const hook = start();
    type(hook, "1");
    type(hook, "12");
    await waitFor(() => expect(hook.result.current.verdict).toEqual({ warnings: [], errors: [] }));
    expect(calls).toEqual([{ dryRun: true, etag: '"5"', patch: { quota: { gpu: 12 } } }]);
  });
});

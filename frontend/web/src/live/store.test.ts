import { describe, expect, it } from "vitest";
import type { AsOf } from "./protocol.ts";
import { isSame, RowStore } from "./store.ts";

const at = (session: number): AsOf => ({ time: "2026-01-01T00:00:00Z", session, rv: null });
const set = (k: string, fields: Record<string, unknown>) => ({ k, set: fields, unset: [] });

describe("RowStore", () => {
  it("patches named fields and leaves every other row the same object", () => {
    const store = new RowStore();
    store.replace(
      [
        { k: "a", quota: 1, limit: 2 },
        { k: "b", quota: 5 },
      ],
      at(1),
    );
    const before = store.row("b");
    store.patch([{ k: "a", set: { quota: 9 }, unset: ["limit"] }], [], at(2));
    expect(store.row("a")).toEqual({ k: "a", quota: 9 });
    expect(store.row("b")).toBe(before);
    expect(store.asOf?.session).toBe(2);
  });

  it("creates the row of an unknown key and lets a delete win", () => {
    const store = new RowStore();
    store.replace([], at(1));
    store.patch([set("a", { x: 1 }), set("b", { x: 2 })], ["b", "never-there"], at(2));
    expect([...store.rows.keys()]).toEqual(["a"]);
  });

  it("wakes only the listeners of rows that changed", () => {
    const store = new RowStore();
    store.replace(
      [
        { k: "a", x: 1 },
        { k: "b", x: 1 },
      ],
      at(1),
    );
    const woken: string[] = [];
    store.subscribeRow("a", () => woken.push("a"));
    store.subscribeRow("b", () => woken.push("b"));
    store.patch([set("a", { x: 2 })], [], at(2));
    store.replace(
      [
        { k: "a", x: 2 },
        { k: "b", x: 3 },
      ],
      at(3),
    );
    expect(woken).toEqual(["a", "b"]);
  });

  it("keeps the identity of rows a new picture repeats", () => {
    const store = new RowStore();
    store.replace([{ k: "a", deep: { list: [1, { y: 2 }] } }], at(1));
    const before = store.row("a");
    store.replace([{ k: "a", deep: { list: [1, { y: 2 }] } }], at(2));
    expect(store.row("a")).toBe(before);
  });

  it("stands still while held, counts changed rows once, and catches up when released", () => {
    const store = new RowStore();
    store.replace([{ k: "a", x: 1 }], at(1));
    store.hold();
    store.patch([set("a", { x: 2 })], [], at(2));
    store.patch([set("a", { x: 3 }), set("b", { x: 1 })], [], at(3));
    expect([store.row("a"), store.row("b"), store.waiting]).toEqual([
      { k: "a", x: 1 },
      undefined,
      2,
    ]);
    expect(store.asOf?.session).toBe(1);
    store.release();
    expect([store.row("a"), store.row("b"), store.waiting]).toEqual([
      { k: "a", x: 3 },
      { k: "b", x: 1 },
      0,
    ]);
    expect(store.asOf?.session).toBe(3);
  });

  it("lets the lowest numbers of a rolling topic go", () => {
    const store = new RowStore(2);
    store.replace([{ k: "9" }, { k: "10" }], at(1));
    store.patch([set("11", {})], [], at(2));
    expect([...store.rows.keys()]).toEqual(["10", "11"]);
  });

  it("shows the first picture even when it comes while held", () => {
    const store = new RowStore();
    store.hold();
    store.replace([{ k: "a", x: 1 }], at(1));
    expect(store.row("a")).toEqual({ k: "a", x: 1 });
    store.patch([set("a", { x: 2 })], [], at(2));
    expect(store.row("a")).toEqual({ k: "a", x: 1 });
  });
});

describe("isSame", () => {
  it.each([
    [{ a: 1 }, { a: 1, b: undefined }, false],
    [[1, 2], [1, 2], true],
    [[1, 2], [2, 1], false],
    [[], {}, false],
    [null, {}, false],
    [{ a: [{ b: null }] }, { a: [{ b: null }] }, true],
  ])("compares %j and %j", (a, b, same) => {
    expect(isSame(a, b)).toBe(same);
  });
});

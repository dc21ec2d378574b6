import { describe, expect, it } from "vitest";
import type { AsOf } from "./protocol.ts";
import { RowStore } from "./store.ts";

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

  it("gives every change a new picture and leaves the earlier one as it was", () => {
    const store = new RowStore();
    store.replace([{ k: "a", x: 1 }], at(1));
    const before = store.picture;
    expect(store.picture).toBe(before);
    store.patch([set("a", { x: 2 })], [], at(2));
    expect(store.picture).not.toBe(before);
    expect([before.rows.get("a"), before.asOf?.session]).toEqual([{ k: "a", x: 1 }, 1]);
  });

  it("keeps the identity of rows that a new snapshot repeats", () => {
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
    expect([store.row("a"), store.row("b"), store.unseenCount]).toEqual([
      { k: "a", x: 1 },
      undefined,
      2,
    ]);
    expect(store.asOf?.session).toBe(1);
    store.release();
    expect([store.row("a"), store.row("b"), store.unseenCount]).toEqual([
      { k: "a", x: 3 },
      { k: "b", x: 1 },
      0,
    ]);
    expect(store.asOf?.session).toBe(3);
  });

  it("drops the lowest numbers of a rolling topic", () => {
    const store = new RowStore(2);
    store.replace([{ k: "9" }, { k: "10" }], at(1));
    store.patch([set("11", {})], [], at(2));
    expect([...store.rows.keys()].sort()).toEqual(["10", "11"]);
  });

  it("shows the first snapshot even when it arrives while held", () => {
    const store = new RowStore();
    store.hold();
    store.replace([{ k: "a", x: 1 }], at(1));
    expect(store.row("a")).toEqual({ k: "a", x: 1 });
    store.patch([set("a", { x: 2 })], [], at(2));
    expect(store.row("a")).toEqual({ k: "a", x: 1 });
  });

  it("shows the beginning of its first snapshot, and of no later one", () => {
    const store = new RowStore();
    store.begin([{ k: "a" }], at(1));
    expect([[...store.rows.keys()], store.loaded, store.picture.isPartial]).toEqual([
      ["a"],
      false,
      true,
    ]);
    store.replace([{ k: "a" }, { k: "b" }], at(1));
    expect([[...store.rows.keys()], store.loaded, store.picture.isPartial]).toEqual([
      ["a", "b"],
      true,
      false,
    ]);
    store.begin([{ k: "c" }], at(1));
    expect([...store.rows.keys()]).toEqual(["a", "b"]);
  });
});

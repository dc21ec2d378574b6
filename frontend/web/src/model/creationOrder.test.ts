import { expect, it } from "vitest";
import { creationOrder, NO_ORDER } from "./creationOrder.ts";

type Row = { readonly createdAt: string; readonly user: string };
const row = (createdAt: string, user = ""): Row => ({ createdAt, user });
const rows = (...entries: [string, Row][]) => new Map(entries);
const first = creationOrder<Row>(rows(["b", row("1")], ["a", row("1")], ["c", row("2")]), NO_ORDER);

it("has the newest row first, and rows of one moment by key", () => {
  expect(first.keys).toEqual(["c", "a", "b"]);
});

it("keeps the order while only the contents of rows change, and shows the new ones", () => {
  const changed = rows(["a", row("1", "ana")], ["b", row("1")], ["c", row("2")]);
  const next = creationOrder(changed, first);
  expect(next.keys).toBe(first.keys);
  expect(next.rows.map(({ user }) => user)).toEqual(["", "ana", ""]);
});

it("orders again when rows come, go or are created anew", () => {
  const others = rows(["a", row("1")], ["b", row("1")], ["d", row("3")]);
  expect(creationOrder(others, first).keys).toEqual(["d", "a", "b"]);
  const anew = rows(["a", row("9")], ["b", row("1")], ["c", row("2")]);
  expect(creationOrder(anew, first).keys).toEqual(["a", "c", "b"]);
});

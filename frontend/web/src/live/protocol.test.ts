import { describe, expect, it } from "vitest";
import { ProtocolError, parseFrame } from "./protocol.ts";

const asOf = { time: "2026-01-01T00:00:00Z", session: 4, rv: "9" };
const snap = { t: "snap", id: "a", epoch: "e", seq: "1", part: 1, of: 1, asOf, items: [] };
const delta = { t: "delta", id: "s1", seq: "2", prev: "1", asOf };

const parse = (frame: unknown) => parseFrame(JSON.stringify(frame));

describe("parseFrame", () => {
  it("fills what a delta leaves out", () => {
    expect(parse({ ...delta, up: [{ k: "a" }] })).toEqual({
      ...delta,
      up: [{ k: "a", set: {}, unset: [] }],
      del: [],
    });
  });

  it("keeps every field of a row", () => {
    const items = [{ k: "a", deep: { list: [1] } }];
    expect(parse({ ...snap, items })).toEqual({ ...snap, items });
  });

  it("takes an unknown cluster position as null", () => {
    expect(parse({ ...snap, asOf: { time: "2026-01-01T00:00:00Z", session: "?" } })).toEqual({
      ...snap,
      asOf: { time: "2026-01-01T00:00:00Z", session: null, rv: null },
    });
  });

  it("fills what a heartbeat and a problem leave out", () => {
    expect(parse({ t: "hb" })).toEqual({ t: "hb", seqs: {}, asOf: null });
    expect(parse({ t: "err", problem: { status: 403 } })).toEqual({
      t: "err",
      id: null,
      problem: { type: "about:blank", title: "Error", status: 403, detail: "" },
    });
  });

  it.each(["notice", "constructor"])("skips the unknown kind %s", (t) => {
    expect(parse({ t, text: "hello" })).toBeNull();
  });

  it.each([
    ["not json", "frame is not JSON: not json"],
    ["[1]", "frame: expected an object, got [1]"],
    ['{"t":"delta","id":"s1","seq":7}', "delta.seq: expected string, got 7"],
    [JSON.stringify({ ...snap, items: {} }), "snap.items: expected Array, got {}"],
    [
      JSON.stringify({ ...snap, items: [{}] }),
      "snap.items.0: expected an object with a string k, got {}",
    ],
    [
      JSON.stringify({ ...delta, up: [{ k: "a", set: 1 }] }),
      "delta.up.0.set: expected an object, got 1",
    ],
  ])("refuses %s", (text, message) => {
    expect(() => parseFrame(text)).toThrow(new ProtocolError(message));
  });
});

import { describe, expect, it } from "vitest";
import { ProtocolError, parseFrame } from "./protocol.ts";

const asOf = { time: "2026-01-01T00:00:00Z", session: 4, rv: "9" };

describe("parseFrame", () => {
  it("fills what a delta leaves out", () => {
    const text = JSON.stringify({
      t: "delta",
      id: "s1",
      seq: "2",
      prev: "1",
      asOf,
      up: [{ k: "a" }],
    });
    expect(parseFrame(text)).toEqual({
      t: "delta",
      id: "s1",
      seq: "2",
      prev: "1",
      asOf,
      up: [{ k: "a", set: {}, unset: [] }],
      del: [],
    });
  });

  it("skips frame kinds of a later version", () => {
    expect(parseFrame('{"t":"notice","text":"hello"}')).toBeNull();
  });

  it.each([
    ["not json", "frame is not JSON: not json"],
    ["[1]", "frame: expected an object, got [1]"],
    ['{"t":"delta","id":"s1","seq":7}', "delta.seq: expected text, got 7"],
    [
      JSON.stringify({ t: "snap", id: "a", epoch: "e", seq: "1", part: 1, of: 1, asOf, items: {} }),
      "snap.items: expected a list, got {}",
    ],
    [
      JSON.stringify({
        t: "snap",
        id: "a",
        epoch: "e",
        seq: "1",
        part: 1,
        of: 1,
        asOf,
        items: [{}],
      }),
      "expected text, got undefined",
    ],
  ])("refuses %s", (text, message) => {
    expect(() => parseFrame(text)).toThrow(new ProtocolError(message));
  });
});

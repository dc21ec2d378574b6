import { describe, expect, it } from "vitest";
import type { ClientFrame, ServerFrame } from "./protocol.ts";
import { Subscription } from "./resume.ts";
import { RowStore } from "./store.ts";

const asOf = { time: "2026-01-01T00:00:00Z", session: 1, rv: null };

function start() {
  const subscription = new Subscription("s1", "queues", {}, new RowStore());
  return { subscription, first: subscription.open(0) };
}

type ReceivedFrame = Parameters<Subscription["take"]>[0];

const snap = (seq: string, part: number, of: number, keys: string[]): ReceivedFrame => ({
  t: "snap",
  id: "s1",
  epoch: "e1",
  seq,
  part,
  of,
  asOf,
  items: keys.map((k) => ({ k })),
});
const delta = (prev: string, seq: string, k: string): Extract<ServerFrame, { t: "delta" }> => ({
  t: "delta",
  id: "s1",
  seq,
  prev,
  asOf,
  up: [{ k, set: {}, unset: [] }],
  del: [],
});
const ask = (seq: string): ClientFrame => ({
  t: "sub",
  id: "s1",
  topic: "queues",
  params: {},
  resume: { epoch: "e1", seq },
});
const keys = (subscription: Subscription) => [...subscription.store.rows.keys()];

describe("Subscription", () => {
  it("asks for a whole picture first and shows it only when every part is there", () => {
    const { subscription, first } = start();
    expect(first).toEqual({ t: "sub", id: "s1", topic: "queues", params: {} });
    expect(subscription.take(snap("10", 1, 2, ["a"]), 0)).toEqual([]);
    expect([subscription.state, subscription.store.loaded]).toEqual(["waiting", false]);
    expect(subscription.take(snap("10", 2, 2, ["b"]), 0)).toEqual([
      { t: "ack", id: "s1", seq: "10" },
    ]);
    expect([subscription.state, keys(subscription)]).toEqual(["live", ["a", "b"]]);
  });

  it("asks once from where it stands when the chain breaks, and goes on after resumed", () => {
    const { subscription } = start();
    subscription.take(snap("10", 1, 1, ["a"]), 0);
    expect(subscription.take(delta("11", "12", "c"), 0)).toEqual([ask("10")]);
    expect(subscription.take(delta("12", "13", "d"), 0)).toEqual([]);
    expect(keys(subscription)).toEqual(["a"]);
    expect(subscription.take({ t: "resumed", id: "s1", from: "10" }, 0)).toEqual([]);
    subscription.take(delta("10", "13", "d"), 0);
    expect([keys(subscription), subscription.seq]).toEqual([["a", "d"], "13"]);
  });

  it("ignores a delta it already has", () => {
    const { subscription } = start();
    subscription.take(snap("10", 1, 1, ["a"]), 0);
    subscription.take(delta("10", "11", "b"), 0);
    expect(subscription.take(delta("10", "11", "b"), 0)).toEqual([]);
  });

  it("waits for the promised snapshot after a reset instead of asking", () => {
    const { subscription } = start();
    subscription.take(snap("10", 1, 1, ["a"]), 0);
    expect(subscription.take({ t: "reset", id: "s1", reason: "slow" }, 0)).toEqual([]);
    expect(subscription.take(delta("10", "11", "b"), 0)).toEqual([]);
    subscription.take(snap("20", 1, 1, ["z"]), 0);
    expect([keys(subscription), subscription.state]).toEqual([["z"], "live"]);
    expect(subscription.open(0)).toEqual(ask("20"));
  });

  it("starts over when the server resumes from another place than asked", () => {
    const { subscription } = start();
    subscription.take(snap("10", 1, 1, ["a"]), 0);
    expect(subscription.take({ t: "resumed", id: "s1", from: "9" }, 0)).toEqual([
      { t: "sub", id: "s1", topic: "queues", params: {} },
    ]);
  });

  it("starts over when a part of a picture is missing, asking only once", () => {
    const { subscription } = start();
    subscription.take(snap("5", 1, 1, ["a"]), 0);
    const subscribeAnew: ClientFrame = { t: "sub", id: "s1", topic: "queues", params: {} };
    expect(subscription.take(snap("10", 2, 4, ["b"]), 0)).toEqual([subscribeAnew]);
    expect(subscription.take(snap("10", 3, 4, ["c"]), 0)).toEqual([]);
    expect(subscription.take(snap("10", 4, 4, ["d"]), 0)).toEqual([]);
    expect(keys(subscription)).toEqual(["a"]);
  });

  it("acknowledges every 32nd delta or after five seconds", () => {
    const { subscription } = start();
    subscription.take(snap("0", 1, 1, []), 0);
    const acked: string[] = [];
    for (let seq = 1; seq <= 70; seq++) {
      const sent = subscription.take(delta(String(seq - 1), String(seq), "a"), 100);
      if (sent.length > 0) acked.push(String(seq));
    }
    expect(acked).toEqual(["32", "64"]);
    expect(subscription.take(delta("70", "71", "a"), 5_200)).toEqual([
      { t: "ack", id: "s1", seq: "71" },
    ]);
  });

  it("asks again when the answer is overdue", () => {
    const { subscription, first } = start();
    expect(subscription.remind(14_000)).toEqual([]);
    expect(subscription.remind(16_000)).toEqual([first]);
    expect(subscription.remind(17_000)).toEqual([]);
  });
});

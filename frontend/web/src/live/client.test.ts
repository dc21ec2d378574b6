import { beforeEach, describe, expect, it } from "vitest";
import { LiveServer, type ServerConnection } from "../../dev/live-server.ts";
import { LiveClient } from "./client.ts";
import type { Clock, Wire } from "./socket.ts";

/** A clock turned by hand; timers run in the order of their time. */
class FakeClock implements Clock {
  time = 0;
  chance = 0.5;
  #timers: { at: number; run: () => void }[] = [];

  now = () => this.time;
  random = () => this.chance;
  after = (ms: number, run: () => void) => {
    const timer = { at: this.time + ms, run };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  };

  turn(ms: number): void {
    const end = this.time + ms;
    for (;;) {
      const next = this.#timers.sort((a, b) => a.at - b.at)[0];
      if (next === undefined || next.at > end) break;
      this.#timers.shift();
      this.time = next.at;
      next.run();
    }
    this.time = end;
  }
}

/** Both ends of one socket: frames lie in two queues until the test lets them through. */
class FakeWire implements Wire {
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: string }) => void) | null = null;
  onclose: ((event: { code: number }) => void) | null = null;
  toServer: string[] = [];
  toClient: string[] = [];
  closedByClient = false;
  readonly server: ServerConnection;

  constructor(server: LiveServer) {
    this.server = server.connect((frame) => this.toClient.push(JSON.stringify(frame)));
  }

  send = (text: string) => this.toServer.push(text);
  close = () => {
    this.closedByClient = true;
  };

  pump(): void {
    while (this.toServer.length + this.toClient.length > 0) {
      for (const text of this.toServer.splice(0)) this.server.receive(text);
      for (const text of this.toClient.splice(0)) this.onmessage?.({ data: text });
    }
  }
}

let clock: FakeClock;
let server: LiveServer;
let wires: FakeWire[];
let client: LiveClient;

beforeEach(() => {
  clock = new FakeClock();
  server = new LiveServer();
  wires = [];
  client = new LiveClient(
    () => {
      const wire = new FakeWire(server);
      wires.push(wire);
      return wire;
    },
    clock,
    "en",
  );
});

function wire(): FakeWire {
  const last = wires.at(-1);
  if (last === undefined) throw new Error("nothing is connected");
  return last;
}

function connect(): void {
  client.start();
  wire().onopen?.();
  wire().pump();
}

const sent = (t: string) => wire().server.received.filter((frame) => frame.t === t);

describe("LiveClient", () => {
  it("says hello, subscribes, and patches rows from deltas", () => {
    server.topic("queues").put({ k: "a", quota: 1 });
    const topic = client.topic("queues");
    connect();
    expect(client.status.link).toBe("open");
    expect(topic.store.row("a")).toEqual({ k: "a", quota: 1 });
    server.topic("queues").put({ k: "a", quota: 2 });
    wire().server.flush();
    wire().pump();
    expect(topic.store.row("a")).toEqual({ k: "a", quota: 2 });
  });

  it("sends the filter in the name of a topic as parameters", () => {
    client.topic("workloads?state=pending,gated");
    connect();
    expect(sent("sub")).toMatchObject([{ topic: "workloads", params: { state: "pending,gated" } }]);
  });

  it("shares one subscription between two watchers and ends it half a minute after the last", () => {
    const first = client.topic("nodes");
    const second = client.topic("nodes");
    connect();
    expect(first.store).toBe(second.store);
    expect(sent("sub")).toHaveLength(1);
    first.release();
    first.release();
    second.release();
    clock.turn(10_000);
    const third = client.topic("nodes");
    clock.turn(25_000);
    wire().pump();
    expect(sent("unsub")).toHaveLength(0);
    third.release();
    clock.turn(30_000);
    wire().pump();
    expect(sent("unsub")).toEqual([{ t: "unsub", id: "s1" }]);
  });

  it("reconnects at once, resumes without a snapshot, and misses nothing", () => {
    server.topic("queues").put({ k: "a", quota: 1 });
    const topic = client.topic("queues");
    connect();
    const before = topic.store.row("a");
    wire().onclose?.({ code: 1012 });
    expect(client.status.link).toBe("offline");
    server.topic("queues").put({ k: "b", quota: 7 });
    clock.turn(0);
    wire().onopen?.();
    wire().pump();
    wire().server.flush();
    wire().pump();
    expect(sent("sub")[0]?.resume).toEqual({ epoch: "e1", seq: "1" });
    expect(topic.store.row("a")).toBe(before);
    expect(topic.store.row("b")).toEqual({ k: "b", quota: 7 });
  });

  it("takes a fresh snapshot when the log was restarted", () => {
    server.topic("queues").put({ k: "a" });
    const topic = client.topic("queues");
    connect();
    server.topic("queues").restart("e2");
    server.topic("queues").remove("a");
    server.topic("queues").put({ k: "b" });
    wire().onclose?.({ code: 1006 });
    clock.turn(0);
    wire().onopen?.();
    wire().pump();
    expect([...topic.store.rows.keys()]).toEqual(["b"]);
  });

  it("waits 1 s doubling to 30 s, times chance, between failed attempts", () => {
    clock.chance = 1;
    client.start();
    const waits: number[] = [];
    for (let attempt = 0; attempt < 8; attempt++) {
      wire().onclose?.({ code: 1006 });
      const wait = (client.status.retryAt ?? 0) - clock.time;
      waits.push(wait);
      clock.turn(wait);
    }
    expect(waits).toEqual([0, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
  });

  it("backs off from a server that greets and then fails, but not from one that held for a while", () => {
    clock.chance = 1;
    client.start();
    const waits: number[] = [];
    const greetAndLose = (heldMs: number) => {
      wire().onopen?.();
      wire().pump();
      clock.turn(heldMs);
      wire().onclose?.({ code: 1011 });
      const wait = (client.status.retryAt ?? 0) - clock.time;
      waits.push(wait);
      clock.turn(wait);
    };
    for (const held of [0, 0, 500, 500, 12_000, 0]) greetAndLose(held);
    expect(waits).toEqual([0, 1_000, 2_000, 4_000, 0, 1_000]);
  });

  it.each([
    [4401, "expired"],
    [4403, "refused"],
    [4400, "refused"],
  ])("does not come back after close %i", (code, state) => {
    connect();
    wire().onclose?.({ code });
    clock.turn(120_000);
    expect([client.status.link, wires.length]).toEqual([state, 1]);
  });

  it("drops a connection that has gone silent", () => {
    connect();
    clock.turn(70_000);
    expect(wires[0]?.closedByClient).toBe(true);
    expect(wires.length).toBe(2);
  });

  it("drops a connection that sends what is not a frame", () => {
    connect();
    wire().onmessage?.({ data: "{" });
    expect(client.status.link).toBe("offline");
  });

  it("marks a refused topic as failed with the server's problem", () => {
    const topic = client.topic("secrets");
    connect();
    const problem = { type: "forbidden", title: "Forbidden", status: 403, detail: "no right" };
    wire().onmessage?.({ data: JSON.stringify({ t: "err", id: "s1", problem }) });
    expect([topic.subscription.state, topic.subscription.problem]).toEqual(["failed", problem]);
  });

  it("tells the server of a hidden tab, again after a reconnect", () => {
    connect();
    client.setHidden(true);
    wire().pump();
    expect(sent("visibility")).toEqual([{ t: "visibility", hidden: true }]);
    wire().onclose?.({ code: 1006 });
    clock.turn(0);
    wire().onopen?.();
    wire().pump();
    expect(sent("visibility")).toEqual([{ t: "visibility", hidden: true }]);
  });

  it("measures the mirror's lag by the server's clock, not the browser's", () => {
    clock.time = Date.parse("2026-01-01T09:00:00Z");
    client.start();
    wire().onopen?.();
    const receive = (frame: object) => wire().onmessage?.({ data: JSON.stringify(frame) });
    receive({ t: "welcome", conn: "c", rights: "r", time: "2026-01-01T00:00:00Z", hb: 20 });
    clock.time += 15_000;
    receive({ t: "hb", seqs: {}, asOf: { time: "2026-01-01T00:00:02Z", session: null, rv: "1" } });
    expect(client.status.lagMs).toBe(13_000);
    expect(client.status.asOf?.rv).toBe("1");
    receive({ t: "hb", seqs: {}, asOf: { time: null, session: null, rv: "" } });
    expect(client.status.lagMs).toBe(13_000);
  });

  it("sends nothing for a view, only for a watch", () => {
    connect();
    const before = client.view("queues");
    expect([before.loaded, before.rows.size, wire().toServer]).toEqual([false, 0, []]);
    const release = client.watch("queues", () => {});
    wire().pump();
    expect(sent("sub")).toHaveLength(1);
    expect(client.view("queues").loaded).toBe(true);
    release();
  });

  it("returns the same view until something of the topic changes", () => {
    server.topic("queues").put({ k: "a", quota: 1 });
    let calls = 0;
    client.watch("queues", () => {
      calls += 1;
    });
    connect();
    const before = client.view("queues");
    wire().onmessage?.({ data: JSON.stringify({ t: "hb", seqs: {} }) });
    expect(client.view("queues")).toBe(before);
    calls = 0;
    server.topic("queues").put({ k: "a", quota: 2 });
    wire().server.flush();
    wire().pump();
    expect([calls, client.view("queues") === before]).toEqual([1, false]);
    expect(before.rows.get("a")).toEqual({ k: "a", quota: 1 });
  });

  it("shows a refused topic's problem in its view", () => {
    client.watch("queues", () => {});
    connect();
    const problem = { type: "forbidden", title: "Forbidden", status: 403, detail: "no right" };
    wire().onmessage?.({ data: JSON.stringify({ t: "err", id: "s1", problem }) });
    expect(client.view("queues").problem).toEqual(problem);
  });

  it("counts waiting rows over all topics while paused", () => {
    const topic = client.topic("queues");
    connect();
    client.setPaused(true);
    server.topic("queues").put({ k: "a" });
    wire().server.flush();
    wire().pump();
    expect([client.status.waiting, topic.store.rows.size]).toEqual([1, 0]);
    client.setPaused(false);
    expect([client.status.waiting, topic.store.rows.size]).toEqual([0, 1]);
  });
});

describe("LiveClient under a broken network", () => {
  // Random writes, lost and doubled frames, disconnects and log restarts: whatever happens, once
  // the line is quiet the browser must hold exactly what the server holds.
  it.each(Array.from({ length: 60 }, (_, seed) => seed + 1))("converges for seed %i", (seed) => {
    const random = seeded(seed);
    clock.chance = 0.1;
    const log = server.topic("queues");
    const topic = client.topic("queues");
    connect();
    for (let step = 0; step < 150; step++) {
      const dice = random();
      if (dice < 0.45) log.put({ k: `q${Math.floor(random() * 12)}`, x: step });
      else if (dice < 0.55) log.remove(`q${Math.floor(random() * 12)}`);
      else if (dice < 0.75) wire().server.flush();
      else if (dice < 0.85) disturb(wire(), random);
      else if (dice < 0.9) reconnect();
      else if (dice < 0.92) log.restart(`e${step}`);
      else wire().pump();
    }
    reconnect();
    wire().server.flush();
    wire().pump();
    expect(Object.fromEntries(topic.store.rows)).toEqual(Object.fromEntries(log.rows));
    expect(topic.subscription.state).toBe("live");
  });

  function reconnect(): void {
    wire().onclose?.({ code: 1006 });
    // Whatever the back-off has grown to, it is over after this.
    if (client.status.link !== "connecting") clock.turn(30_000);
    wire().onopen?.();
    wire().pump();
  }

  function disturb(target: FakeWire, random: () => number): void {
    for (const text of target.toServer.splice(0)) target.server.receive(text);
    const frames = target.toClient;
    if (frames.length === 0) return;
    const index = Math.floor(random() * frames.length);
    const frame = frames[index] ?? "";
    if (random() < 0.5) frames.splice(index, 1);
    else frames.splice(index, 0, frame);
  }
});

function seeded(seed: number): () => number {
  let state = seed * 2_654_435_761;
  return () => {
    state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 0x9e3779b9) | 0;
    return ((state ^ (state >>> 13)) >>> 0) / 2 ** 32;
  };
}

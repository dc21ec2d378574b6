/**
 * The topics the page looks at, over one link.
 *
 * Components ask for a topic and get its rows; who else looks at the same topic, whether the
 * socket is up, and how a lost connection is resumed is settled here. A topic nobody looks at
 * any more is kept for half a minute, so that going back and forth between pages shows rows at once.
 */
import type { AsOf, ClientFrame, ServerFrame } from "./protocol.ts";
import { Subscription } from "./resume.ts";
import { type Clock, Link, type LinkState, type OpenWire } from "./socket.ts";
import { RowStore } from "./store.ts";

export type LiveStatus = {
  readonly link: LinkState;
  readonly retryAt: number | null;
  readonly paused: boolean;
  readonly heardAt: number | null;
  /** How far the server's picture was behind the cluster when it last said so. */
  readonly lagMs: number;
};

export type Topic = {
  readonly subscription: Subscription;
  readonly store: RowStore;
  release(): void;
};

type Shared = { subscription: Subscription; users: number; cancelLinger: () => void };

const LINGER_MS = 30_000;
/** Topics whose old rows the server does not take back one by one. */
const ROLLING: Readonly<Record<string, number>> = { sessions: 200 };

export class LiveClient {
  readonly #link: Link;
  readonly #clock: Clock;
  readonly #topics = new Map<string, Shared>();
  readonly #byId = new Map<string, Shared>();
  readonly #listeners = new Set<() => void>();
  #status: LiveStatus = {
    link: "connecting",
    retryAt: null,
    paused: false,
    heardAt: null,
    lagMs: 0,
  };
  #ready = false;
  #skewMs = 0;
  #hidden = false;
  #nextId = 1;

  constructor(openWire: OpenWire, clock: Clock, locale: string) {
    this.#clock = clock;
    const hello: ClientFrame = { t: "hello", client: "kaiweb-dashboard", locale };
    this.#link = new Link(openWire, clock, hello, {
      onState: (link, retryAt) => this.#linkChanged(link, retryAt),
      onReady: (serverTime) => {
        // People's clocks are wrong; ages are measured against the server's.
        this.#skewMs = clock.now() - Date.parse(serverTime);
        if (this.#hidden) this.#link.send({ t: "visibility", hidden: true });
        this.#openAll();
      },
      onFrame: (frame) => this.#receive(frame),
      onBeat: () => this.#beat(),
    });
  }

  get status(): LiveStatus {
    return this.#status;
  }

  start(): void {
    this.#link.start();
  }

  stop(): void {
    this.#link.stop();
  }

  retryNow(): void {
    this.#link.retryNow();
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The subscription of a topic without holding on to it: what a first render may show. */
  look(name: string, params: Record<string, string> = {}): Subscription {
    const key = topicKey(name, params);
    return (this.#topics.get(key) ?? this.#add(key, name, params)).subscription;
  }

  /** Rows of one topic, shared by all who ask for the same topic and parameters. */
  topic(name: string, params: Record<string, string> = {}): Topic {
    const key = topicKey(name, params);
    const shared = this.#topics.get(key) ?? this.#add(key, name, params);
    shared.users += 1;
    shared.cancelLinger();
    let released = false;
    return {
      subscription: shared.subscription,
      store: shared.subscription.store,
      release: () => {
        if (released) return;
        released = true;
        this.#leave(key, shared);
      },
    };
  }

  /** A hidden tab is content with one frame a second. */
  setHidden(hidden: boolean): void {
    this.#hidden = hidden;
    if (this.#ready) this.#link.send({ t: "visibility", hidden });
  }

  /** Freeze what is on screen, or let it move again. */
  setPaused(paused: boolean): void {
    if (paused === this.#status.paused) return;
    for (const { subscription } of this.#topics.values()) {
      if (paused) subscription.store.hold();
      else subscription.store.release();
    }
    this.#setStatus({ paused });
  }

  /** Rows that changed while paused, over all topics in sight. */
  get waiting(): number {
    let sum = 0;
    for (const { subscription } of this.#topics.values()) sum += subscription.store.waiting;
    return sum;
  }

  #add(key: string, name: string, params: Record<string, string>): Shared {
    const id = `s${this.#nextId++}`;
    const store = new RowStore(ROLLING[name]);
    if (this.#status.paused) store.hold();
    const subscription = new Subscription(id, name, params, store);
    const shared: Shared = { subscription, users: 0, cancelLinger: () => {} };
    this.#topics.set(key, shared);
    this.#byId.set(id, shared);
    if (this.#ready) this.#link.send(subscription.open(this.#clock.now()));
    this.#linger(key, shared);
    return shared;
  }

  #leave(key: string, shared: Shared): void {
    shared.users -= 1;
    if (shared.users === 0) this.#linger(key, shared);
  }

  #linger(key: string, shared: Shared): void {
    shared.cancelLinger = this.#clock.after(LINGER_MS, () => {
      this.#topics.delete(key);
      this.#byId.delete(shared.subscription.id);
      if (this.#ready) this.#link.send({ t: "unsub", id: shared.subscription.id });
    });
  }

  #linkChanged(link: LinkState, retryAt: number | null): void {
    this.#ready = link === "open";
    this.#setStatus({ link, retryAt });
  }

  #openAll(): void {
    // What is on screen comes first, topics that merely linger after it.
    const shared = [...this.#topics.values()].sort(
      (a, b) => Number(b.users > 0) - Number(a.users > 0),
    );
    for (const { subscription } of shared) this.#link.send(subscription.open(this.#clock.now()));
  }

  #receive(frame: ServerFrame): void {
    const now = this.#clock.now();
    switch (frame.t) {
      case "welcome":
        return;
      case "hb":
        this.#setStatus({ heardAt: now, lagMs: this.#lag(frame.asOf, now) });
        return;
      case "err":
        if (frame.id !== null) this.#byId.get(frame.id)?.subscription.fail(frame.problem);
        this.#notify();
        return;
      default: {
        const shared = this.#byId.get(frame.id);
        if (shared === undefined) return;
        for (const answer of shared.subscription.take(frame, now)) this.#link.send(answer);
        const lagMs = "asOf" in frame ? this.#lag(frame.asOf, now) : this.#status.lagMs;
        this.#setStatus({ heardAt: now, lagMs });
      }
    }
  }

  #lag(asOf: AsOf | null, now: number): number {
    const at = Date.parse(asOf?.time ?? "");
    return Number.isNaN(at) ? this.#status.lagMs : Math.max(0, now - this.#skewMs - at);
  }

  #beat(): void {
    const now = this.#clock.now();
    const seqs: Record<string, string> = {};
    for (const { subscription } of this.#topics.values()) {
      if (subscription.seq !== null) seqs[subscription.id] = subscription.seq;
      for (const frame of subscription.remind(now)) this.#link.send(frame);
    }
    this.#link.send({ t: "hb", seqs });
  }

  #setStatus(change: Partial<LiveStatus>): void {
    this.#status = { ...this.#status, ...change };
    this.#notify();
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }
}

function topicKey(name: string, params: Record<string, string>): string {
  return `${name}?${new URLSearchParams(params)}`;
}

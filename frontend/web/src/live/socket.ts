/**
 * A websocket that reconnects: it opens, detects silence, and retries after a loss.
 *
 * The first retry is immediate. Later ones wait 1 s doubling to 30 s with full jitter, so that a
 * thousand browsers do not all reconnect at once to a server that has just restarted.
 */
import { type ClientFrame, parseFrame, type ServerFrame, SUBPROTOCOL } from "./protocol.ts";

export type LinkState = "connecting" | "open" | "offline" | "expired" | "refused";

/** Time, timers and random numbers, passed in so that tests can control them. */
export type Clock = {
  now(): number;
  random(): number;
  after(ms: number, run: () => void): () => void;
};

/** The part of a WebSocket that is used here. */
export type Wire = {
  send(text: string): void;
  close(code?: number): void;
  onopen: (() => void) | null;
  onmessage: ((event: { data: string }) => void) | null;
  onclose: ((event: { code: number }) => void) | null;
};

export type OpenWire = (subprotocol: string) => Wire;

export type LinkEvents = {
  onState(state: LinkState, retryAt: number | null): void;
  onReady(serverTime: string): void;
  onFrame(frame: ServerFrame): void;
  onBeat(): void;
};

const FIRST_RETRY_MS = 1_000;
const LAST_RETRY_MS = 30_000;
const WELCOME_WITHIN_MS = 10_000;
/** A connection is given up after the longer of this many heartbeats and this time: a busy server is late at times. */
const SILENCE_FACTOR = 2.5;
const SILENCE_MS = 25_000;
/** A connection shorter than this counts as failed, so that the back-off grows. */
const STABLE_AFTER_MS = 10_000;
const EXPIRED = 4401;
const REFUSED = new Set([4400, 4403]);
const BUSY = 4429;

export class Link {
  readonly #openWire: OpenWire;
  readonly #clock: Clock;
  readonly #events: LinkEvents;
  readonly #hello: ClientFrame;
  #wire: Wire | null = null;
  #failures = 0;
  #beatMs = 20_000;
  #heardAt = 0;
  #openedAt: number | null = null;
  #cancelTimer: () => void = () => {};

  constructor(openWire: OpenWire, clock: Clock, hello: ClientFrame, events: LinkEvents) {
    this.#openWire = openWire;
    this.#clock = clock;
    this.#hello = hello;
    this.#events = events;
  }

  start(): void {
    if (this.#wire === null) this.#connect();
  }

  /** Skip the back-off, for example because the user came back to the tab. */
  retryNow(): void {
    if (this.#wire === null) this.#connect();
  }

  stop(): void {
    this.#cancelTimer();
    const wire = this.#wire;
    this.#wire = null;
    if (wire !== null) {
      detach(wire);
      wire.close(1000);
    }
  }

  send(frame: ClientFrame): void {
    this.#wire?.send(JSON.stringify(frame));
  }

  #connect(): void {
    this.#cancelTimer();
    this.#events.onState("connecting", null);
    const wire = this.#openWire(SUBPROTOCOL);
    this.#wire = wire;
    wire.onopen = () => this.send(this.#hello);
    wire.onmessage = (event) => this.#receive(event.data);
    wire.onclose = (event) => this.#lost(event.code);
    this.#wait(WELCOME_WITHIN_MS, () => this.#drop());
  }

  #receive(text: string): void {
    this.#heardAt = this.#clock.now();
    let frame: ServerFrame | null;
    try {
      frame = parseFrame(text);
    } catch {
      this.#drop();
      return;
    }
    if (frame === null) return;
    if (frame.t === "welcome") {
      this.#openedAt = this.#clock.now();
      this.#beatMs = Math.max(1, frame.hb) * 1_000;
      this.#events.onState("open", null);
      this.#events.onReady(frame.time);
      this.#wait(this.#beatMs, () => this.#beat());
    } else {
      this.#events.onFrame(frame);
    }
  }

  #beat(): void {
    const silenceMs = Math.max(SILENCE_MS, this.#beatMs * SILENCE_FACTOR);
    if (this.#clock.now() - this.#heardAt > silenceMs) {
      this.#drop();
      return;
    }
    this.#events.onBeat();
    this.#wait(this.#beatMs, () => this.#beat());
  }

  /** Close a silent or broken connection without waiting for its close event. */
  #drop(): void {
    const wire = this.#wire;
    if (wire === null) return;
    detach(wire);
    wire.close();
    this.#lost(1006);
  }

  #lost(code: number): void {
    this.#cancelTimer();
    this.#wire = null;
    const openedAt = this.#openedAt;
    this.#openedAt = null;
    if (openedAt !== null && this.#clock.now() - openedAt >= STABLE_AFTER_MS) this.#failures = 0;
    if (code === EXPIRED || REFUSED.has(code)) {
      this.#events.onState(code === EXPIRED ? "expired" : "refused", null);
      return;
    }
    const delay = this.#nextDelay(code);
    this.#failures += 1;
    this.#events.onState("offline", this.#clock.now() + delay);
    this.#wait(delay, () => this.#connect());
  }

  #nextDelay(code: number): number {
    if (this.#failures === 0 && code !== BUSY) return 0;
    const ceiling = FIRST_RETRY_MS * 2 ** Math.max(0, this.#failures - 1);
    return this.#clock.random() * Math.min(LAST_RETRY_MS, ceiling);
  }

  #wait(ms: number, run: () => void): void {
    this.#cancelTimer();
    this.#cancelTimer = this.#clock.after(ms, run);
  }
}

function detach(wire: Wire): void {
  wire.onopen = null;
  wire.onmessage = null;
  wire.onclose = null;
}

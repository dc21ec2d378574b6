/**
 * The position of one subscription in the change log.
 *
 * A pure state machine: it takes frames, patches the store and returns the frames to send. A delta
 * is applied only if its `prev` is the current position. Otherwise something was missed, and the
 * subscription is opened again from the current position.
 */
import type { ClientFrame, Problem, Resume, Row, ServerFrame } from "./protocol.ts";
import type { RowStore } from "./store.ts";

export type SubscriptionState = "waiting" | "live" | "failed";

type Subscribed = Extract<ServerFrame, { t: "snap" | "delta" | "resumed" | "reset" }>;
type Snap = Extract<ServerFrame, { t: "snap" }>;

const ACK_EVERY_FRAMES = 32;
const ACK_EVERY_MS = 5_000;
const ANSWER_WITHIN_MS = 15_000;

export class Subscription {
  readonly id: string;
  readonly topic: string;
  readonly params: Record<string, string>;
  readonly store: RowStore;
  state: SubscriptionState = "waiting";
  problem: Problem | null = null;
  /** The last applied position. */
  #at: Resume | null = null;
  /** The parts of a snapshot that is still arriving. */
  #parts: { frame: Snap; items: Row[]; seen: number } | null = null;
  /** When an answer was last asked for or was last heard of; null if none is due. */
  #requestedAt: number | null = null;
  #unacknowledged = 0;
  #acknowledgedAt = 0;

  constructor(id: string, topic: string, params: Record<string, string>, store: RowStore) {
    this.id = id;
    this.topic = topic;
    this.params = params;
    this.store = store;
  }

  /** The last applied position, or null before the first complete snapshot. */
  get seq(): string | null {
    return this.#at?.seq ?? null;
  }

  /** Return the frame that opens this topic, from the current position if there is one. */
  open(now: number): ClientFrame {
    this.state = "waiting";
    this.problem = null;
    this.#parts = null;
    this.#requestedAt = now;
    this.#unacknowledged = 0;
    const base = { t: "sub" as const, id: this.id, topic: this.topic, params: this.params };
    return this.#at === null ? base : { ...base, resume: this.#at };
  }

  /** Take one frame of this subscription and return what to send for it. */
  take(frame: Subscribed, now: number): ClientFrame[] {
    switch (frame.t) {
      case "snap":
        return this.#takeSnap(frame, now);
      case "delta":
        return this.#takeDelta(frame, now);
      case "resumed":
        return this.#takeResumed(frame.from, now);
      case "reset":
        // The server sends a snapshot without being asked; deltas no longer fit the old rows.
        this.#at = null;
        this.#parts = null;
        this.#requestedAt = now;
        this.state = "waiting";
        return [];
    }
  }

  /** Open the topic again when the answer is overdue; called at every heartbeat. */
  remind(now: number): ClientFrame[] {
    const overdue = this.#requestedAt !== null && now - this.#requestedAt > ANSWER_WITHIN_MS;
    return overdue && this.state !== "failed" ? [this.open(now)] : [];
  }

  fail(problem: Problem): void {
    this.state = "failed";
    this.problem = problem;
  }

  #takeSnap(frame: Snap, now: number): ClientFrame[] {
    if (frame.part === 1) this.#parts = { frame, items: [], seen: 0 };
    const parts = this.#parts;
    const isExpected =
      parts !== null &&
      frame.part === parts.seen + 1 &&
      frame.seq === parts.frame.seq &&
      frame.epoch === parts.frame.epoch;
    // An unexpected part is the rest of an abandoned snapshot if an answer is due; else something was missed.
    if (!isExpected) return this.#requestedAt === null ? this.#restart(now) : [];
    if (this.#requestedAt !== null) this.#requestedAt = now; // each part has its own time limit
    parts.seen = frame.part;
    for (const item of frame.items) parts.items.push(item);
    if (frame.part < frame.of) {
      if (frame.part === 1) this.store.begin(frame.items, frame.asOf);
      return [];
    }
    this.#parts = null;
    this.#at = { epoch: frame.epoch, seq: frame.seq };
    this.#becomeLive();
    this.store.replace(parts.items, frame.asOf);
    return this.#acknowledgeIfDue(now, true);
  }

  #takeDelta(frame: Extract<Subscribed, { t: "delta" }>, now: number): ClientFrame[] {
    if (this.#at === null || this.#parts !== null) return this.#resume(now);
    if (frame.seq === this.#at.seq) return [];
    if (frame.prev !== this.#at.seq) return this.#resume(now);
    this.#at = { epoch: this.#at.epoch, seq: frame.seq };
    this.#becomeLive();
    this.store.patch(frame.up, frame.del, frame.asOf);
    return this.#acknowledgeIfDue(now, false);
  }

  #takeResumed(from: string, now: number): ClientFrame[] {
    if (this.#at === null || from !== this.#at.seq) return this.#restart(now);
    this.#becomeLive();
    return [];
  }

  #becomeLive(): void {
    this.#requestedAt = null;
    this.state = "live";
    this.problem = null;
  }

  #resume(now: number): ClientFrame[] {
    // More deltas of the broken chain may arrive; one request is enough.
    return this.#requestedAt === null ? [this.open(now)] : [];
  }

  #restart(now: number): ClientFrame[] {
    this.#at = null;
    return [this.open(now)];
  }

  #acknowledgeIfDue(now: number, atOnce: boolean): ClientFrame[] {
    this.#unacknowledged += 1;
    const due =
      atOnce ||
      this.#unacknowledged >= ACK_EVERY_FRAMES ||
      now - this.#acknowledgedAt >= ACK_EVERY_MS;
    if (!due || this.#at === null) return [];
    this.#unacknowledged = 0;
    this.#acknowledgedAt = now;
    return [{ t: "ack", id: this.id, seq: this.#at.seq }];
  }
}

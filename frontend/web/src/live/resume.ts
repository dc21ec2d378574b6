/**
 * One subscription's place in the change log.
 *
 * A pure machine: frames go in, the store is patched, and what must be sent comes out. It holds
 * the rule the whole protocol rests on: a delta is applied only if its `prev` is the position we
 * stand at. Anything else means we missed something, and we ask again from where we are.
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
  #at: Resume | null = null;
  #parts: { frame: Snap; items: Row[]; seen: number } | null = null;
  #askedAt: number | null = null;
  #unacknowledged = 0;
  #acknowledgedAt = 0;

  constructor(id: string, topic: string, params: Record<string, string>, store: RowStore) {
    this.id = id;
    this.topic = topic;
    this.params = params;
    this.store = store;
  }

  /** The last position applied, null before the first whole picture. */
  get seq(): string | null {
    return this.#at?.seq ?? null;
  }

  /** Ask for this topic on a fresh connection, from where we stand if we stand anywhere. */
  open(now: number): ClientFrame {
    this.state = "waiting";
    this.problem = null;
    this.#parts = null;
    this.#askedAt = now;
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
        // A snapshot follows by itself: we must not ask, and what we hold is no base any more.
        this.#at = null;
        this.#parts = null;
        this.#askedAt = now;
        this.state = "waiting";
        return [];
    }
  }

  /** Ask once more when an answer is overdue; called with every heartbeat. */
  remind(now: number): ClientFrame[] {
    const overdue = this.#askedAt !== null && now - this.#askedAt > ANSWER_WITHIN_MS;
    return overdue && this.state !== "failed" ? [this.open(now)] : [];
  }

  fail(problem: Problem): void {
    this.state = "failed";
    this.problem = problem;
  }

  #takeSnap(frame: Snap, now: number): ClientFrame[] {
    if (frame.part === 1) this.#parts = { frame, items: [], seen: 0 };
    const parts = this.#parts;
    const fits =
      parts !== null &&
      frame.part === parts.seen + 1 &&
      frame.seq === parts.frame.seq &&
      frame.epoch === parts.frame.epoch;
    // The tail of a picture we gave up while another one is on its way.
    if (!fits) return this.#askedAt === null ? this.#askFromScratch(now) : [];
    if (this.#askedAt !== null) this.#askedAt = now;
    parts.seen = frame.part;
    for (const item of frame.items) parts.items.push(item);
    if (frame.part < frame.of) return [];
    this.#parts = null;
    this.#at = { epoch: frame.epoch, seq: frame.seq };
    this.#arrived();
    this.store.replace(parts.items, frame.asOf);
    return this.#acknowledge(now, true);
  }

  #takeDelta(frame: Extract<Subscribed, { t: "delta" }>, now: number): ClientFrame[] {
    if (this.#at === null || this.#parts !== null) return this.#askAgain(now);
    if (frame.seq === this.#at.seq) return [];
    if (frame.prev !== this.#at.seq) return this.#askAgain(now);
    this.#at = { epoch: this.#at.epoch, seq: frame.seq };
    this.#arrived();
    this.store.patch(frame.up, frame.del, frame.asOf);
    return this.#acknowledge(now, false);
  }

  #takeResumed(from: string, now: number): ClientFrame[] {
    if (this.#at === null || from !== this.#at.seq) return this.#askFromScratch(now);
    this.#arrived();
    return [];
  }

  #arrived(): void {
    this.#askedAt = null;
    this.state = "live";
    this.problem = null;
  }

  #askAgain(now: number): ClientFrame[] {
    // Deltas of the broken chain may still be on their way; one question is enough.
    return this.#askedAt === null ? [this.open(now)] : [];
  }

  #askFromScratch(now: number): ClientFrame[] {
    this.#at = null;
    return [this.open(now)];
  }

  #acknowledge(now: number, always: boolean): ClientFrame[] {
    this.#unacknowledged += 1;
    const due =
      always ||
      this.#unacknowledged >= ACK_EVERY_FRAMES ||
      now - this.#acknowledgedAt >= ACK_EVERY_MS;
    if (!due || this.#at === null) return [];
    this.#unacknowledged = 0;
    this.#acknowledgedAt = now;
    return [{ t: "ack", id: this.id, seq: this.#at.seq }];
  }
}

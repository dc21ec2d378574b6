/**
 * The topics that components watch, over one connection.
 *
 * A component asks for a topic and gets its rows. This class shares one subscription among all
 * watchers of a topic and resumes it after a lost connection. A topic without watchers is kept for
 * half a minute, so that a user who goes back to a page sees its rows at once.
 */
import type { RowOf, TopicName } from "../model/rows.ts";
import type { AsOf, ClientFrame, Problem, Row, ServerFrame } from "./protocol.ts";
import { Subscription } from "./resume.ts";
import { type Clock, Link, type LinkState, type OpenWire } from "./socket.ts";
import { NOTHING, type Picture, RowStore } from "./store.ts";

export type LiveStatus = {
  readonly link: LinkState;
  readonly retryAt: number | null;
  readonly paused: boolean;
  /** Rows that changed while paused, over all watched topics. */
  readonly waiting: number;
  readonly heardAt: number | null;
  /** How far the server's data was behind the cluster when the server last reported it. */
  readonly lagMs: number;
  /** What the newest frame describes; null before the first. */
  readonly asOf: AsOf | null;
};

/** One version of a topic. It never changes, so identities can be compared. */
export type TopicView<T> = Picture<T> & { readonly problem: Problem | null };

export type Topic = {
  readonly subscription: Subscription;
  readonly store: RowStore;
  release(): void;
};

type Shared = {
  readonly subscription: Subscription;
  users: number;
  cancelLinger: () => void;
  /** The latest view, and the picture it was made from. */
  view: TopicView<Row>;
  picture: Picture<Row>;
};

const LINGER_MS = 30_000;
/** Topics whose old rows the server does not delete one by one, and how many rows to keep. */
const ROLLING: Readonly<Record<string, number>> = { sessions: 200 };
const UNSEEN: TopicView<Row> = { ...NOTHING, problem: null };

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
    waiting: 0,
    heardAt: null,
    lagMs: 0,
    asOf: null,
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
        // Ages are measured by the server's clock, because the browser's clock may be wrong.
        this.#skewMs = clock.now() - Date.parse(serverTime);
        this.#setStatus({ heardAt: clock.now() });
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

  /** Call the listener after every change of the status or of any topic. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Keep one topic up to date, and call the listener after every change, until released. */
  watch(name: TopicName, listener: () => void): () => void {
    const topic = this.topic(name);
    const unsubscribe = this.subscribe(listener);
    return () => {
      unsubscribe();
      topic.release();
    };
  }

  /** Return the current view of a topic. It has no side effect: only `watch` subscribes. */
  view<N extends TopicName>(name: N): TopicView<RowOf<N>> {
    const shared = this.#topics.get(name);
    const view: TopicView<Row> = shared === undefined ? UNSEEN : currentView(shared);
    // The only cast from rows of the wire to typed rows: the REST schema describes them.
    return view as TopicView<RowOf<N>>;
  }

  /** Subscribe to a topic; everyone who asks for the same name shares one subscription. */
  topic(name: string): Topic {
    const shared = this.#topics.get(name) ?? this.#add(name);
    shared.users += 1;
    shared.cancelLinger();
    let released = false;
    return {
      subscription: shared.subscription,
      store: shared.subscription.store,
      release: () => {
        if (released) return;
        released = true;
        shared.users -= 1;
        if (shared.users === 0) this.#linger(name, shared);
      },
    };
  }

  /** Report whether the tab is hidden; a hidden tab gets one frame a second. */
  setHidden(hidden: boolean): void {
    this.#hidden = hidden;
    if (this.#ready) this.#link.send({ t: "visibility", hidden });
  }

  /** Stop or resume showing changes; they are received all the same. */
  setPaused(paused: boolean): void {
    if (paused === this.#status.paused) return;
    for (const { subscription } of this.#topics.values()) {
      if (paused) subscription.store.hold();
      else subscription.store.release();
    }
    this.#setStatus({ paused });
  }

  #add(name: string): Shared {
    const store = new RowStore(ROLLING[name]);
    if (this.#status.paused) store.hold();
    const [topic = "", query] = name.split("?");
    const parameters = Object.fromEntries(new URLSearchParams(query));
    const subscription = new Subscription(`s${this.#nextId++}`, topic, parameters, store);
    const shared: Shared = {
      subscription,
      users: 0,
      cancelLinger: () => {},
      view: UNSEEN,
      picture: store.picture,
    };
    this.#topics.set(name, shared);
    this.#byId.set(subscription.id, shared);
    if (this.#ready) this.#link.send(subscription.open(this.#clock.now()));
    return shared;
  }

  #linger(name: string, shared: Shared): void {
    shared.cancelLinger = this.#clock.after(LINGER_MS, () => {
      this.#topics.delete(name);
      this.#byId.delete(shared.subscription.id);
      if (this.#ready) this.#link.send({ t: "unsub", id: shared.subscription.id });
    });
  }

  #linkChanged(link: LinkState, retryAt: number | null): void {
    this.#ready = link === "open";
    this.#setStatus({ link, retryAt });
  }

  #openAll(): void {
    // Watched topics first, then those that only linger.
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
        this.#setHeard(frame.asOf, now);
        return;
      case "err":
        if (frame.id !== null) this.#byId.get(frame.id)?.subscription.fail(frame.problem);
        this.#setStatus({});
        return;
      default: {
        const shared = this.#byId.get(frame.id);
        if (shared === undefined) return;
        for (const answer of shared.subscription.take(frame, now)) this.#link.send(answer);
        this.#setHeard("asOf" in frame ? frame.asOf : null, now);
      }
    }
  }

  /** Note that a frame has come, and what it describes; null for a frame that does not say. */
  #setHeard(asOf: AsOf | null, now: number): void {
    const at = Date.parse(asOf?.time ?? "");
    const lag = Number.isNaN(at) ? {} : { lagMs: Math.max(0, now - this.#skewMs - at) };
    this.#setStatus({ heardAt: now, ...lag, ...(asOf === null ? {} : { asOf }) });
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
    this.#status = { ...this.#status, ...change, waiting: this.#waiting() };
    for (const listener of this.#listeners) listener();
  }

  #waiting(): number {
    let sum = 0;
    for (const { subscription } of this.#topics.values()) sum += subscription.store.unseenCount;
    return sum;
  }
}

/** Return the same view object until the rows or the problem change. */
function currentView(shared: Shared): TopicView<Row> {
  const { picture } = shared.subscription.store;
  const { state, problem: refusal } = shared.subscription;
  const problem = state === "failed" ? refusal : null;
  if (shared.picture !== picture || shared.view.problem !== problem) {
    shared.picture = picture;
    shared.view = { ...picture, problem };
  }
  return shared.view;
}

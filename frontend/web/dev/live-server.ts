/**
 * A small server side of the live protocol: a change log per topic, snapshots, chained deltas,
 * resume. The development backend runs it behind a real websocket; the client's tests drive it
 * frame by frame. It follows the protocol's rules and shares no code with the client.
 */
export type FakeRow = { k: string; [field: string]: unknown };
type Change = { seq: number; k: string; row: FakeRow | null };

export class TopicLog {
  readonly rows = new Map<string, FakeRow>();
  epoch = "e1";
  seq = 0;
  #changes: Change[] = [];
  readonly keep: number;

  constructor(keep = 5_000) {
    this.keep = keep;
  }

  put(row: FakeRow): void {
    this.rows.set(row.k, row);
    this.#log(row.k, row);
  }

  remove(key: string): void {
    if (this.rows.delete(key)) this.#log(key, null);
  }

  /** The changes after a position, or null if the log no longer reaches back that far. */
  since(epoch: string, seq: number): Change[] | null {
    const first = this.#changes[0]?.seq ?? this.seq + 1;
    if (epoch !== this.epoch || seq + 1 < first || seq > this.seq) return null;
    return this.#changes.filter((change) => change.seq > seq);
  }

  restart(epoch: string): void {
    this.epoch = epoch;
    this.seq = 0;
    this.#changes = [];
  }

  #log(k: string, row: FakeRow | null): void {
    this.seq += 1;
    this.#changes.push({ seq: this.seq, k, row });
    if (this.#changes.length > this.keep) this.#changes.splice(0, this.#changes.length - this.keep);
  }
}

type Subscribed = { id: string; topic: TopicLog; at: number; epoch: string };

export class LiveServer {
  readonly topics = new Map<string, TopicLog>();
  readonly heartbeatS: number;
  session = 0;

  constructor(heartbeatS = 20) {
    this.heartbeatS = heartbeatS;
  }

  topic(name: string): TopicLog {
    const topic = this.topics.get(name) ?? new TopicLog();
    this.topics.set(name, topic);
    return topic;
  }

  connect(send: (frame: object) => void): ServerConnection {
    return new ServerConnection(this, send);
  }
}

export class ServerConnection {
  readonly #server: LiveServer;
  readonly #send: (frame: object) => void;
  readonly #subs = new Map<string, Subscribed>();
  readonly received: Record<string, unknown>[] = [];

  constructor(server: LiveServer, send: (frame: object) => void) {
    this.#server = server;
    this.#send = send;
  }

  receive(text: string): void {
    const frame = JSON.parse(text) as Record<string, unknown>;
    this.received.push(frame);
    if (frame.t === "hello") {
      const hb = this.#server.heartbeatS;
      this.#send({ t: "welcome", conn: "c1", rights: "r1", time: new Date().toISOString(), hb });
    } else if (frame.t === "sub") {
      this.#subscribe(
        frame as { id: string; topic: string; resume?: { epoch: string; seq: string } },
      );
    } else if (frame.t === "unsub") {
      this.#subs.delete(frame.id as string);
    } else if (frame.t === "hb") {
      this.#send({ t: "hb", seqs: {} });
    }
  }

  /** Send one coalesced delta to every subscription that lags behind its log. */
  flush(): void {
    for (const sub of this.#subs.values()) this.#flushOne(sub);
  }

  #subscribe(frame: { id: string; topic: string; resume?: { epoch: string; seq: string } }): void {
    const topic = this.#server.topic(frame.topic);
    const resume = frame.resume;
    if (resume !== undefined && topic.since(resume.epoch, Number(resume.seq)) !== null) {
      const at = Number(resume.seq);
      this.#subs.set(frame.id, { id: frame.id, topic, at, epoch: topic.epoch });
      this.#send({ t: "resumed", id: frame.id, from: resume.seq });
      return;
    }
    if (resume !== undefined) {
      const reason = resume.epoch === topic.epoch ? "gap" : "epoch";
      this.#send({ t: "reset", id: frame.id, reason });
    }
    this.#snapshot(frame.id, topic);
  }

  #snapshot(id: string, topic: TopicLog): void {
    this.#subs.set(id, { id, topic, at: topic.seq, epoch: topic.epoch });
    const rows = [...topic.rows.values()];
    const size = 500;
    const of = Math.max(1, Math.ceil(rows.length / size));
    for (let part = 1; part <= of; part++) {
      const items = rows.slice((part - 1) * size, part * size);
      const seq = String(topic.seq);
      this.#send({ t: "snap", id, epoch: topic.epoch, seq, part, of, asOf: this.#asOf(), items });
    }
  }

  #flushOne(sub: Subscribed): void {
    const changes = sub.topic.since(sub.epoch, sub.at);
    if (changes === null) {
      this.#send({ t: "reset", id: sub.id, reason: "epoch" });
      this.#snapshot(sub.id, sub.topic);
      return;
    }
    if (changes.length === 0) return;
    const last = new Map(changes.map((change) => [change.k, change.row]));
    const up: object[] = [];
    const del: string[] = [];
    for (const [k, row] of last) {
      if (row === null) del.push(k);
      else up.push({ k, set: row });
    }
    const prev = String(sub.at);
    sub.at = sub.topic.seq;
    this.#send({ t: "delta", id: sub.id, seq: String(sub.at), prev, asOf: this.#asOf(), up, del });
  }

  #asOf(): object {
    return { time: new Date().toISOString(), session: this.#server.session, rv: "1" };
  }
}

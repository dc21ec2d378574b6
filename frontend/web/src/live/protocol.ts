/**
 * The frames of the live protocol (`kaiweb.live.v1`) and the one place where text from the wire
 * becomes typed values. Whatever does not fit is a ProtocolError: the connection is then dropped
 * and resumed, because a client that guesses shows wrong numbers.
 */

export const SUBPROTOCOL = "kaiweb.live.v1";

export type Row = { readonly k: string; readonly [field: string]: unknown };

export type AsOf = {
  /** Null while the mirror has not seen the cluster yet. */
  readonly time: string | null;
  readonly session: number | null;
  readonly rv: string | null;
};

export type Change = {
  readonly k: string;
  readonly set: Readonly<Record<string, unknown>>;
  readonly unset: readonly string[];
};

export type Problem = {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
};

export type Resume = { readonly epoch: string; readonly seq: string };

export type ResetReason = "gap" | "epoch" | "slow" | "rights" | "restart";

export type ServerFrame =
  | { t: "welcome"; conn: string; rights: string; time: string; hb: number }
  | {
      t: "snap";
      id: string;
      epoch: string;
      seq: string;
      part: number;
      of: number;
      asOf: AsOf;
      items: readonly Row[];
    }
  | {
      t: "delta";
      id: string;
      seq: string;
      prev: string;
      asOf: AsOf;
      up: readonly Change[];
      del: readonly string[];
    }
  | { t: "resumed"; id: string; from: string }
  | { t: "reset"; id: string; reason: ResetReason }
  | { t: "hb"; seqs: Readonly<Record<string, string>>; asOf: AsOf | null }
  | { t: "err"; id: string | null; problem: Problem };

export type ClientFrame =
  | { t: "hello"; client: string; locale: string }
  | { t: "sub"; id: string; topic: string; params: Record<string, string>; resume?: Resume }
  | { t: "ack"; id: string; seq: string }
  | { t: "unsub" | "pause" | "continue"; id: string }
  | { t: "visibility"; hidden: boolean }
  | { t: "hb"; seqs: Record<string, string> };

export class ProtocolError extends Error {
  override name = "ProtocolError";
}

type Json = Readonly<Record<string, unknown>>;

/** Read one text frame; null for a kind this version does not know (the protocol only ever adds). */
export function parseFrame(text: string): ServerFrame | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new ProtocolError(`frame is not JSON: ${text.slice(0, 80)}`, { cause });
  }
  const frame = object(value, "frame");
  switch (frame.t) {
    case "welcome":
      return {
        t: "welcome",
        conn: string(frame, "conn"),
        rights: string(frame, "rights"),
        time: string(frame, "time"),
        hb: number(frame, "hb"),
      };
    case "snap":
      return {
        t: "snap",
        id: string(frame, "id"),
        epoch: string(frame, "epoch"),
        seq: string(frame, "seq"),
        part: number(frame, "part"),
        of: number(frame, "of"),
        asOf: asOf(frame.asOf),
        items: array(frame, "items").map(row),
      };
    case "delta":
      return {
        t: "delta",
        id: string(frame, "id"),
        seq: string(frame, "seq"),
        prev: string(frame, "prev"),
        asOf: asOf(frame.asOf),
        up: optionalArray(frame, "up").map(change),
        del: optionalArray(frame, "del").map(text_),
      };
    case "resumed":
      return { t: "resumed", id: string(frame, "id"), from: string(frame, "from") };
    case "reset":
      return {
        t: "reset",
        id: string(frame, "id"),
        reason: string(frame, "reason") as ResetReason,
      };
    case "hb":
      return {
        t: "hb",
        seqs: (frame.seqs ?? {}) as Record<string, string>,
        asOf: frame.asOf === undefined ? null : asOf(frame.asOf),
      };
    case "err":
      return { t: "err", id: (frame.id as string) ?? null, problem: problem(frame.problem) };
    default:
      return null;
  }
}

function object(value: unknown, what: string): Json {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new ProtocolError(`${what}: expected an object, got ${JSON.stringify(value)}`);
  }
  return value as Json;
}

function string(frame: Json, field: string): string {
  const value = frame[field];
  if (typeof value !== "string") {
    throw new ProtocolError(
      `${String(frame.t)}.${field}: expected text, got ${JSON.stringify(value)}`,
    );
  }
  return value;
}

function number(frame: Json, field: string): number {
  const value = frame[field];
  if (typeof value !== "number") {
    throw new ProtocolError(
      `${String(frame.t)}.${field}: expected a number, got ${JSON.stringify(value)}`,
    );
  }
  return value;
}

function array(frame: Json, field: string): readonly unknown[] {
  const value = frame[field];
  if (!Array.isArray(value)) {
    throw new ProtocolError(
      `${String(frame.t)}.${field}: expected a list, got ${JSON.stringify(value)}`,
    );
  }
  return value;
}

function optionalArray(frame: Json, field: string): readonly unknown[] {
  return frame[field] === undefined ? [] : array(frame, field);
}

function text_(value: unknown): string {
  if (typeof value !== "string") {
    throw new ProtocolError(`expected text, got ${JSON.stringify(value)}`);
  }
  return value;
}

function row(value: unknown): Row {
  const item = object(value, "item");
  text_(item.k);
  return item as Row;
}

function change(value: unknown): Change {
  const item = object(value, "change");
  return {
    k: text_(item.k),
    set: item.set === undefined ? {} : object(item.set, "change.set"),
    unset: Array.isArray(item.unset) ? item.unset.map(text_) : [],
  };
}

function asOf(value: unknown): AsOf {
  const item = object(value, "asOf");
  return {
    time: typeof item.time === "string" ? item.time : null,
    session: typeof item.session === "number" ? item.session : null,
    rv: typeof item.rv === "string" ? item.rv : null,
  };
}

function problem(value: unknown): Problem {
  const item = object(value, "problem");
  return {
    type: String(item.type ?? "about:blank"),
    title: String(item.title ?? "Error"),
    status: typeof item.status === "number" ? item.status : 0,
    detail: String(item.detail ?? ""),
  };
}

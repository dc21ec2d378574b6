/**
 * The frames of the live protocol (`kaiweb.live.v1`), and the only place where text from the
 * socket becomes typed values. A frame that does not match its schema throws a ProtocolError; the
 * connection is then dropped and resumed, because guessing would show wrong numbers.
 */
import * as v from "valibot";

export const SUBPROTOCOL = "kaiweb.live.v1";

export type Row = { readonly k: string; readonly [field: string]: unknown };

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

// Checked, but not copied: a snapshot has thousands of rows, and REST's schema describes them.
const row = v.custom<Row>(
  (value) => isObject(value) && typeof value.k === "string",
  "expected an object with a string k",
);
const fields = v.custom<Readonly<Record<string, unknown>>>(isObject, "expected an object");

const change = v.object({
  k: v.string(),
  set: v.optional(fields, {}),
  unset: v.optional(v.array(v.string()), []),
});

/** What the rows show: the time, the session and the cluster version; null where it is unknown. */
const asOf = v.object({
  time: v.fallback(v.nullable(v.string()), null),
  session: v.fallback(v.nullable(v.number()), null),
  rv: v.fallback(v.nullable(v.string()), null),
});

const problem = v.object({
  type: v.optional(v.string(), "about:blank"),
  title: v.optional(v.string(), "Error"),
  status: v.optional(v.number(), 0),
  detail: v.optional(v.string(), ""),
});

const welcome = v.object({
  t: v.literal("welcome"),
  conn: v.string(),
  rights: v.string(),
  time: v.string(),
  hb: v.number(),
});
const snap = v.object({
  t: v.literal("snap"),
  id: v.string(),
  epoch: v.string(),
  seq: v.string(),
  part: v.number(),
  of: v.number(),
  asOf,
  items: v.array(row),
});
const delta = v.object({
  t: v.literal("delta"),
  id: v.string(),
  seq: v.string(),
  prev: v.string(),
  asOf,
  up: v.optional(v.array(change), []),
  del: v.optional(v.array(v.string()), []),
});
const resumed = v.object({ t: v.literal("resumed"), id: v.string(), from: v.string() });
const reset = v.object({ t: v.literal("reset"), id: v.string(), reason: v.string() });
const heartbeat = v.object({
  t: v.literal("hb"),
  seqs: v.optional(v.record(v.string(), v.string()), {}),
  asOf: v.optional(v.nullable(asOf), null),
});
const failure = v.object({
  t: v.literal("err"),
  id: v.optional(v.nullable(v.string()), null),
  problem,
});

const FRAME_SCHEMAS = { welcome, snap, delta, resumed, reset, hb: heartbeat, err: failure };

export type ServerFrame = v.InferOutput<(typeof FRAME_SCHEMAS)[keyof typeof FRAME_SCHEMAS]>;
export type Change = v.InferOutput<typeof change>;
export type AsOf = v.InferOutput<typeof asOf>;
export type Problem = v.InferOutput<typeof problem>;
export type Resume = { readonly epoch: string; readonly seq: string };

export type ClientFrame =
  | { t: "hello"; client: string; locale: string }
  | { t: "sub"; id: string; topic: string; params: Record<string, string>; resume?: Resume }
  | { t: "ack"; id: string; seq: string }
  | { t: "unsub"; id: string }
  | { t: "visibility"; hidden: boolean }
  | { t: "hb"; seqs: Record<string, string> };

export class ProtocolError extends Error {
  override name = "ProtocolError";
}

/** Parse one text frame. Return null for an unknown kind, because later versions may add kinds. */
export function parseFrame(text: string): ServerFrame | null {
  let frame: unknown;
  try {
    frame = JSON.parse(text);
  } catch (cause) {
    throw new ProtocolError(`frame is not JSON: ${text.slice(0, 80)}`, { cause });
  }
  if (!isObject(frame)) {
    throw new ProtocolError(`frame: expected an object, got ${JSON.stringify(frame)}`);
  }
  const kind = String(frame.t);
  if (!isKnownKind(kind)) return null;
  const result = v.safeParse(FRAME_SCHEMAS[kind], frame, { abortEarly: true });
  if (!result.success) throw new ProtocolError(issueMessage(kind, result.issues[0]));
  return result.output;
}

function isKnownKind(kind: string): kind is keyof typeof FRAME_SCHEMAS {
  return Object.hasOwn(FRAME_SCHEMAS, kind);
}

function issueMessage(kind: string, issue: v.BaseIssue<unknown>): string {
  const path = [kind, v.getDotPath(issue)].filter(Boolean).join(".");
  const expected = issue.type === "custom" ? issue.message : `expected ${issue.expected}`;
  return `${path}: ${expected}, got ${JSON.stringify(issue.input)?.slice(0, 80)}`;
}

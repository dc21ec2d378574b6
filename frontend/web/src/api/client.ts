/** The REST calls of the dashboard. All of them are public API that scripts can use as well. */
import type {
  Health,
  Me,
  NewQueue,
  Preferences,
  Queue,
  QueuePatch,
  QueueWritten,
} from "../model/rows.ts";
import { noAnswerInTime, readProblem, unreachable } from "./problem.ts";

export type QueueAnswer = QueueWritten;

const ROOT = "/api/v1";
/** A write that takes longer has failed for the user, who must be able to try again. */
const WRITE_TIMEOUT_MS = 30_000;

export function fetchMe(signal?: AbortSignal): Promise<Me> {
  return call<Me>("GET", "/me", signal ? { signal } : {});
}

export function fetchHealth(signal?: AbortSignal): Promise<Health> {
  return call<Health>("GET", "/health", signal ? { signal } : {});
}

/** Return the user data embedded in the page, so that the first paint needs no request. */
export function bootMe(): Me | null {
  return boot().me ?? null;
}

/** Return the choices of the user embedded in the page; those that are missing have their defaults. */
export function bootPreferences(): Preferences {
  return boot().preferences ?? {};
}

function boot(): { me?: Me; preferences?: Preferences } {
  const text = document.getElementById("kaiweb-boot")?.textContent;
  return text ? JSON.parse(text) : {};
}

export function storePreferences(choices: Preferences): Promise<Preferences> {
  return call<Preferences>("PATCH", "/me/preferences", { body: choices });
}

type WriteOptions = { dryRun: boolean; signal?: AbortSignal };

export function patchQueue(
  name: string,
  patch: QueuePatch,
  options: WriteOptions & { etag: string },
): Promise<QueueAnswer> {
  return write<QueueAnswer>("PATCH", `/queues/${encodeURIComponent(name)}`, options, {
    body: patch,
    headers: { "If-Match": options.etag },
  });
}

export function createQueue(queue: NewQueue, options: WriteOptions): Promise<QueueAnswer> {
  return write<QueueAnswer>("POST", "/queues", options, { body: queue });
}

/** Let kaiweb own a queue that another manager applies; the values stay. */
export function takeOverQueue(name: string, owner: string, reason: string): Promise<Queue> {
  const query = new URLSearchParams(reason === "" ? {} : { reason });
  const path = `/queues/${encodeURIComponent(name)}/take-over?${query}`;
  return call<Queue>("POST", path, { body: { owner } });
}

/** Delete a queue. A dry run returns what it would do, a real one nothing. */
export function deleteQueue(
  name: string,
  options: WriteOptions & { etag: string },
): Promise<QueueAnswer | undefined> {
  return write("DELETE", `/queues/${encodeURIComponent(name)}`, options, {
    headers: { "If-Match": options.etag },
  });
}

function write<T>(
  method: string,
  path: string,
  { dryRun, signal }: WriteOptions,
  options: CallOptions,
): Promise<T> {
  const timeout = AbortSignal.timeout(WRITE_TIMEOUT_MS);
  return call<T>(method, dryRun ? `${path}?dryRun=true` : path, {
    ...options,
    signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
  });
}

type CallOptions = { body?: unknown; headers?: Record<string, string>; signal?: AbortSignal };

export async function call<T>(method: string, path: string, options: CallOptions = {}): Promise<T> {
  const response = await send(method, path, options);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

/** Return the answer to a GET as text of the given media type. */
export async function callText(path: string, type: string, signal: AbortSignal): Promise<string> {
  return (await send("GET", path, { headers: { Accept: type }, signal })).text();
}

async function send(method: string, path: string, options: CallOptions): Promise<Response> {
  const headers: Record<string, string> = { Accept: "application/json", ...options.headers };
  if (method !== "GET") headers["X-CSRFToken"] = csrfToken();
  const init: RequestInit = { method, headers, credentials: "same-origin" };
  if (options.signal) init.signal = options.signal;
  if (options.body !== undefined) {
    headers["Content-Type"] = "application/json";
    init.body = JSON.stringify(options.body);
  }
  let response: Response;
  try {
    response = await fetch(ROOT + path, init);
  } catch (cause) {
    if (cause instanceof DOMException && cause.name === "AbortError") throw cause;
    if (cause instanceof DOMException && cause.name === "TimeoutError") throw noAnswerInTime();
    throw unreachable(cause);
  }
  if (!response.ok) throw await readProblem(response);
  return response;
}

export function csrfToken(): string {
  const match = /(?:^|; )csrftoken=([^;]+)/.exec(document.cookie);
  return match?.[1] === undefined ? "" : decodeURIComponent(match[1]);
}

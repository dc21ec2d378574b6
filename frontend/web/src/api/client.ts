/** The REST calls the dashboard makes. Every one of them is public API: what we do, CI can do. */
import type { Health, Me, QueuePatch, QueueWritten } from "../model/rows.ts";
import { readProblem, unreachable } from "./problem.ts";

export type QueueAnswer = QueueWritten;

const ROOT = "/api/v1";

export function fetchMe(signal?: AbortSignal): Promise<Me> {
  return call<Me>("GET", "/me", signal ? { signal } : {});
}

export function fetchHealth(signal?: AbortSignal): Promise<Health> {
  return call<Health>("GET", "/health", signal ? { signal } : {});
}

/** What the page was served with, so that the first paint needs no question; null in development. */
export function bootMe(): Me | null {
  const text = document.getElementById("kaiweb-boot")?.textContent;
  return text ? ((JSON.parse(text) as { me?: Me }).me ?? null) : null;
}

export function patchQueue(
  name: string,
  patch: QueuePatch,
  options: { etag: string; dryRun: boolean; signal?: AbortSignal },
): Promise<QueueAnswer> {
  const query = options.dryRun ? "?dryRun=true" : "";
  return call<QueueAnswer>("PATCH", `/queues/${encodeURIComponent(name)}${query}`, {
    body: patch,
    headers: { "If-Match": options.etag },
    ...(options.signal ? { signal: options.signal } : {}),
  });
}

type CallOptions = { body?: unknown; headers?: Record<string, string>; signal?: AbortSignal };

async function call<T>(method: string, path: string, options: CallOptions = {}): Promise<T> {
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
    throw unreachable(cause);
  }
  if (!response.ok) throw await readProblem(response);
  return (await response.json()) as T;
}

export function csrfToken(): string {
  const match = /(?:^|; )csrftoken=([^;]+)/.exec(document.cookie);
  return match?.[1] === undefined ? "" : decodeURIComponent(match[1]);
}

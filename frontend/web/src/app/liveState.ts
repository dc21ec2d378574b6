import { LIVE, type LiveText } from "../i18n/app.ts";
import { span } from "../i18n/numbers.ts";
import type { LiveStatus } from "../live/client.ts";

export type LiveState = LiveText & { readonly tone: "good" | "warn" | "bad" | "neutral" };

/** The server sends a heartbeat every few seconds, so a longer silence means that the data is old. */
const SILENT_AFTER_MS = 30_000;

/** A data lag up to this is normal, and not worth a warning. */
const LAGGING_AFTER_MS = 10_000;

/** Return what the live indicator shows about the connection. */
export function liveState(status: LiveStatus, nowMs: number): LiveState {
  switch (status.link) {
    case "expired":
      return { tone: "bad", ...LIVE.signedOut };
    case "refused":
      return { tone: "bad", ...LIVE.refused };
    case "connecting":
      return { tone: "neutral", ...LIVE.connecting };
    case "offline":
      return {
        tone: "bad",
        ...LIVE.offline(status.retryAt === null ? null : span(status.retryAt - nowMs)),
      };
  }
  if (status.paused) return { tone: "warn", ...LIVE.paused(status.waiting) };
  if (status.lagMs > LAGGING_AFTER_MS) return { tone: "warn", ...LIVE.lagging(span(status.lagMs)) };
  const silenceMs = status.heardAt === null ? 0 : nowMs - status.heardAt;
  if (silenceMs > SILENT_AFTER_MS) return { tone: "warn", ...LIVE.silent(span(silenceMs)) };
  return { tone: "good", ...LIVE.live };
}

import { LIVE, type LiveText } from "../i18n/app.ts";
import { span } from "../i18n/numbers.ts";
import type { LiveStatus } from "../live/client.ts";

export type LiveState = LiveText & { readonly tone: "good" | "warn" | "bad" | "calm" };

/** The server sends a heartbeat every 20 s, so a longer silence means that the data is old. */
const SILENT_AFTER_MS = 30_000;

const LAG_FROM_MS = 10_000;

/** Return what the live indicator shows about the connection. */
export function liveState(status: LiveStatus, now: number): LiveState {
  switch (status.link) {
    case "expired":
      return { tone: "bad", ...LIVE.signedOut };
    case "refused":
      return { tone: "bad", ...LIVE.refused };
    case "connecting":
      return { tone: "calm", ...LIVE.connecting };
    case "offline":
      return {
        tone: "bad",
        ...LIVE.offline(status.retryAt === null ? null : span(status.retryAt - now)),
      };
  }
  if (status.paused) return { tone: "warn", ...LIVE.paused(status.waiting) };
  if (status.lagMs > LAG_FROM_MS) return { tone: "warn", ...LIVE.lagging(span(status.lagMs)) };
  const silence = status.heardAt === null ? 0 : now - status.heardAt;
  if (silence > SILENT_AFTER_MS) return { tone: "warn", ...LIVE.silent(span(silence)) };
  return { tone: "good", ...LIVE.live };
}

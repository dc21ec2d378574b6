import type { LiveStatus } from "../live/client.ts";
import { span } from "../model/units.ts";

export type LiveWords = {
  readonly tone: "good" | "warn" | "bad" | "calm";
  readonly word: string;
  readonly why: string;
};

/** The server says something at least every 20 s, so a longer silence means the numbers are old. */
const SILENT_AFTER_MS = 30_000;

const LAG_FROM_MS = 10_000;

/** What the live pill says about the connection. */
export function liveWords(status: LiveStatus, waiting: number, now: number): LiveWords {
  switch (status.link) {
    case "expired":
      return { tone: "bad", word: "Signed out", why: "Your session has ended; sign in again." };
    case "refused":
      return {
        tone: "bad",
        word: "Refused",
        why: "The server refused live updates; reload the page or ask for the right to see them.",
      };
    case "connecting":
      return { tone: "calm", word: "Connecting", why: "Opening the live connection." };
    case "offline": {
      const wait = status.retryAt === null ? "" : ` in ${span(status.retryAt - now)}`;
      return { tone: "bad", word: "Offline", why: `The connection was lost; next try${wait}.` };
    }
  }
  if (status.paused) {
    return {
      tone: "warn",
      word: `Paused · ${waiting}`,
      why: `${waiting} rows have changed since.`,
    };
  }
  if (status.lagMs > LAG_FROM_MS) {
    const lag = span(status.lagMs);
    return {
      tone: "warn",
      word: `Delayed ${lag}`,
      why: `The mirror is ${lag} behind the cluster.`,
    };
  }
  const silence = status.heardAt === null ? 0 : now - status.heardAt;
  if (silence > SILENT_AFTER_MS) {
    const age = span(silence);
    return { tone: "warn", word: `Delayed ${age}`, why: `Nothing was heard for ${age}.` };
  }
  return { tone: "good", word: "Live", why: "Changes appear as they happen." };
}

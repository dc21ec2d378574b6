import type { LiveStatus } from "../live/client.ts";
import { useLiveStatus } from "../live/react.tsx";
import { useNow } from "./now.ts";

/** Data older than this may lead to wrong decisions: pages say so, and forms are locked. */
const STALE_AFTER_MS = 60_000;

/** Return how old the data shown is in milliseconds if that is too old to act on, else null. */
export function useStale(): number | null {
  return staleMs(useLiveStatus(), useNow());
}

/** Return the same from a status: data is old if the connection is lost or silent, or the mirror lags. */
export function staleMs({ link, heardAt, lagMs }: LiveStatus, nowMs: number): number | null {
  const silenceMs = heardAt === null ? 0 : nowMs - heardAt;
  const ageMs = link === "open" ? Math.max(lagMs, silenceMs) : silenceMs;
  return ageMs >= STALE_AFTER_MS ? ageMs : null;
}

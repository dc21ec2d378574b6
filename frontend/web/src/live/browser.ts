/** The live client wired to the browser: its WebSocket, its clock, its tab. */
import { LiveClient } from "./client.ts";
import type { Clock, Wire } from "./socket.ts";

const clock: Clock = {
  now: () => Date.now(),
  random: () => Math.random(),
  after: (ms, run) => {
    const timer = window.setTimeout(run, ms);
    return () => window.clearTimeout(timer);
  },
};

export function connectLive(): LiveClient {
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  const url = `${scheme}//${location.host}/api/v1/live`;
  const open = (subprotocol: string) => new WebSocket(url, subprotocol) as unknown as Wire;
  const client = new LiveClient(open, clock, navigator.language);
  // A laptop that wakes up, or a network that returns, should not sit out a half-minute back-off.
  window.addEventListener("online", () => client.retryNow());
  document.addEventListener("visibilitychange", () => {
    const hidden = document.visibilityState === "hidden";
    client.setHidden(hidden);
    if (!hidden) client.retryNow();
  });
  client.start();
  return client;
}

/** The live client with the browser's WebSocket, clock and tab. */
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
  const client = new LiveClient((protocol) => openWire(url, protocol), clock, navigator.language);
  // Retry at once when the laptop wakes up or the network returns, not only after the back-off.
  window.addEventListener("online", () => client.retryNow());
  document.addEventListener("visibilitychange", () => {
    const hidden = document.visibilityState === "hidden";
    client.setHidden(hidden);
    if (!hidden) client.retryNow();
  });
  client.start();
  return client;
}

function openWire(url: string, subprotocol: string): Wire {
  const socket = new WebSocket(url, subprotocol);
  const wire: Wire = {
    send: (text) => socket.send(text),
    close: (code) => socket.close(code),
    onopen: null,
    onmessage: null,
    onclose: null,
  };
  socket.onopen = () => wire.onopen?.();
  socket.onmessage = ({ data }) => wire.onmessage?.({ data: String(data) });
  socket.onclose = ({ code }) => wire.onclose?.({ code });
  return wire;
}

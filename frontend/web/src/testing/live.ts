/** A live client without a server, for components that read the state of the connection. */
import { LiveClient } from "../live/client.ts";
import type { Wire } from "../live/socket.ts";

const CLOCK = { now: () => Date.now(), random: () => 0, after: () => () => {} };

export function silentLive(): { live: LiveClient; wire: Wire } {
  const wire: Wire = {
    send: () => {},
    close: () => {},
    onopen: null,
    onmessage: null,
    onclose: null,
  };
  return { live: new LiveClient(() => wire, CLOCK, "en"), wire };
}

import { act, render, screen } from "@testing-library/react";
import { StrictMode } from "react";
import { describe, expect, it } from "vitest";
import { LiveClient } from "./client.ts";
import type { ClientFrame } from "./protocol.ts";
import { LiveProvider, useTopic } from "./react.tsx";
import type { Wire } from "./socket.ts";

const clock = { now: () => 0, random: () => 0, after: () => () => {} };
const asOf = { time: null, session: null, rv: null };

function connected() {
  const frames: ClientFrame[] = [];
  const wire: Wire = {
    send: (text) => frames.push(JSON.parse(text)),
    close: () => {},
    onopen: null,
    onmessage: null,
    onclose: null,
  };
  const client = new LiveClient(() => wire, clock, "en");
  const receive = (frame: object) => wire.onmessage?.({ data: JSON.stringify(frame) });
  client.start();
  wire.onopen?.();
  receive({ t: "welcome", conn: "c", rights: "r", time: "2026-01-01T00:00:00Z", hb: 20 });
  return { client, frames, receive };
}

function Names({ onRender }: { onRender: () => void }) {
  onRender();
  const { rows } = useTopic("queues");
  return <p>{[...rows.values()].map((queue) => queue.name).join()}</p>;
}

describe("useTopic", () => {
  it("subscribes once, after rendering, and shows rows as they change", () => {
    const { client, frames, receive } = connected();
    const framesInRender: number[] = [];
    render(
      <StrictMode>
        <LiveProvider client={client}>
          <Names onRender={() => framesInRender.push(frames.length)} />
        </LiveProvider>
      </StrictMode>,
    );
    expect(framesInRender.every((sent) => sent === 1)).toBe(true);
    expect(frames.map((frame) => frame.t)).toEqual(["hello", "sub"]);
    const items = [{ k: "a", name: "team-a" }];
    act(() => receive({ t: "snap", id: "s1", epoch: "e", seq: "1", part: 1, of: 1, asOf, items }));
    expect(screen.getByText("team-a")).toBeDefined();
    const up = [{ k: "a", set: { name: "team-b" } }];
    act(() => receive({ t: "delta", id: "s1", seq: "2", prev: "1", asOf, up }));
    expect(screen.getByText("team-b")).toBeDefined();
  });
});

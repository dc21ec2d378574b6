import { describe, expect, it } from "vitest";
import { assignHues, HUES, PATTERNS } from "./hues.ts";

const named = (count: number) =>
  Array.from({ length: count }, (_, index) => ({
    name: `queue-${index}`,
    createdAt: new Date(index * 1_000).toISOString(),
  }));

describe("assignHues", () => {
  it("gives eight queues eight plain hues", () => {
    const hues = [...assignHues(named(HUES)).values()];
    expect(new Set(hues.map(({ hue }) => hue)).size).toBe(HUES);
    expect(hues.every(({ pattern }) => pattern === 0)).toBe(true);
  });

  it("tells 32 queues apart by hue and pattern together", () => {
    const hues = [...assignHues(named(HUES * PATTERNS)).values()];
    expect(new Set(hues.map(({ hue, pattern }) => `${hue} ${pattern}`)).size).toBe(32);
  });

  it("still has a hue for the 33rd", () => {
    expect(assignHues(named(33)).get("queue-32")?.pattern).toBe(0);
  });

  it("changes no queue's hue when a newer one comes, in whatever order rows arrive", () => {
    const before = assignHues(named(7));
    const after = assignHues(named(8).reverse());
    for (const [name, hue] of before) expect(after.get(name)).toEqual(hue);
  });
});

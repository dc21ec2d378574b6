import { describe, expect, it } from "vitest";
import { RowMap } from "./rowMap.ts";

const plain = (map: ReadonlyMap<string, number>) => new Map([...map].sort());

describe("RowMap", () => {
  it("holds what a plain map holds after the same random changes, and never changes itself", () => {
    let expected = new Map<string, number>();
    let map = RowMap.of<number>([]);
    let state = 7;
    const random = (limit: number) => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
      return (state >> 8) % limit;
    };
    for (let step = 0; step < 300; step++) {
      const before = plain(map);
      const previous = map;
      const set = Array.from({ length: random(4) }, (): [string, number] => [
        `namespace/row-${random(400)}`,
        step,
      ]);
      const deleted = Array.from({ length: random(3) }, () => `namespace/row-${random(400)}`);
      map = map.change(set, deleted);
      expected = new Map([...expected, ...set]);
      for (const key of deleted) expected.delete(key);
      expect(plain(previous)).toEqual(before);
    }
    expect(plain(map)).toEqual(new Map([...expected].sort()));
    expect([map.size, [...map.keys()].length, [...map.values()].length]).toEqual([
      expected.size,
      expected.size,
      expected.size,
    ]);
    for (const [key, value] of expected)
      expect([map.has(key), map.get(key)]).toEqual([true, value]);
    expect([map.has("absent"), map.get("absent")]).toEqual([false, undefined]);
  });

  it("spreads keys that differ only at the end, so that a change stays small", () => {
    const entries = Array.from({ length: 10_000 }, (_, index): [string, number] => [
      `team-a/training-job-${index}`,
      index,
    ]);
    const map = RowMap.of(entries);
    const started = performance.now();
    let changed = map;
    for (let step = 0; step < 200; step++)
      changed = changed.change([[`team-a/new-${step}`, 0]], []);
    const perChange = (performance.now() - started) / 200;
    expect(changed.size).toBe(10_200);
    // Copying all of it takes about 0.5 ms; the bound is loose because machines are busy.
    expect(perChange).toBeLessThan(0.5);
  });
});

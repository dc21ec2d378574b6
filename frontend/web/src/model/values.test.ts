import { describe, expect, it } from "vitest";
import { queueRow } from "../testing/rows.ts";
import {
  changedPointers,
  type Entry,
  type EntryProblem,
  editableValues,
  entriesOf,
  isOlder,
  mergeValues,
  type Pointer,
  patchOf,
  readEntries,
  readEntry,
  type Value,
} from "./values.ts";

const queue = queueRow({
  name: "a",
  quota: { gpu: 8, cpuMilli: 2_500, memoryBytes: 64e9 },
  limit: { gpu: "unlimited" },
  weight: { gpu: 2 },
});
const base = editableValues(queue);
const changed = (change: [Pointer, Value][]) => new Map([...base, ...change]);

describe("entries", () => {
  it("show base units as people type them and read back to the same values", () => {
    const entries = entriesOf(base);
    expect(entries.get("/quota/cpuMilli")).toEqual({ kind: "value", text: "2.5" });
    expect(entries.get("/quota/memoryBytes")).toEqual({ kind: "value", text: "64" });
    expect(entries.get("/limit/gpu")?.kind).toBe("unlimited");
    expect(entries.get("/limit/cpuMilli")?.kind).toBe("unset");
    expect(readEntries(entries)).toEqual({ values: base, errors: new Map() });
  });

  it.each<[Pointer, Entry, EntryProblem]>([
    ["/quota/gpu", { kind: "value", text: "" }, "missing"],
    ["/quota/gpu", { kind: "value", text: "8x" }, "notANumber"],
    ["/quota/gpu", { kind: "value", text: "-1" }, "negative"],
    ["/quota/gpu", { kind: "value", text: "0.1234" }, "tooPrecise"],
    ["/priority", { kind: "value", text: "1.5" }, "notWhole"],
  ])("refuses %s %j", (pointer, entry, problem) => {
    expect(readEntry(pointer, entry)).toBe(problem);
  });

  it("reads an emptied weight or priority as unset", () => {
    expect(readEntry("/weight/gpu", { kind: "value", text: " " })).toEqual({ value: undefined });
  });

  it("allows a negative priority", () => {
    expect(readEntry("/priority", { kind: "value", text: "-5" })).toEqual({ value: -5 });
  });
});

describe("patchOf", () => {
  it("names only what changed, and unset as null", () => {
    const mine = changed([
      ["/quota/gpu", 10],
      ["/quota/cpuMilli", undefined],
      ["/limit/gpu", 12],
      ["/priority", 7],
    ]);
    expect(patchOf(base, mine)).toEqual({
      priority: 7,
      quota: { gpu: 10, cpuMilli: null },
      limit: { gpu: 12 },
    });
    expect(patchOf(base, base)).toEqual({});
  });
});

describe("mergeValues", () => {
  it("takes what only one side changed from that side", () => {
    const theirs = changed([["/quota/gpu", 10]]);
    const mine = changed([["/limit/gpu", 16]]);
    const { merged, conflicts } = mergeValues(base, theirs, mine);
    expect(conflicts).toEqual([]);
    expect(changedPointers(base, merged)).toEqual(["/quota/gpu", "/limit/gpu"]);
  });

  it("asks about a field both sides changed differently, and only about that", () => {
    const theirs = changed([
      ["/quota/gpu", 10],
      ["/priority", 5],
    ]);
    const mine = changed([
      ["/quota/gpu", 12],
      ["/priority", 5],
    ]);
    const { merged, conflicts } = mergeValues(base, theirs, mine);
    expect([conflicts, merged.get("/quota/gpu"), merged.get("/priority")]).toEqual([
      ["/quota/gpu"],
      12,
      5,
    ]);
  });
});

describe("isOlder", () => {
  it.each([
    ['"9"', '"10"', true],
    ['"10"', '"9"', false],
    ['"10"', '"10"', false],
    ['"9-1a2b"', '"10-1a2b"', true],
    ['"10-1a2b"', '"10-3c4d"', false],
    ['"10-1a2b"', '"9-3c4d"', false],
    ['"abc"', '"10"', false],
  ])("%s than %s: %s", (etag, than, older) => {
    expect(isOlder(etag, than)).toBe(older);
  });
});

describe("labels", () => {
  const queue = queueRow({ name: "a", labels: { team: "x", cost: "7" } });

  it("are one text, whatever their order", () => {
    expect(editableValues(queue).get("/labels")).toBe("cost=7, team=x");
    expect(readEntry("/labels", { kind: "value", text: "team=x\ncost=7" })).toEqual({
      value: "cost=7, team=x",
    });
    expect(readEntry("/labels", { kind: "value", text: "team" })).toBe("notLabels");
  });

  it("are patched one by one, and null removes one", () => {
    const base = editableValues(queue);
    const mine = new Map([...base, ["/labels", "cost=8, env=prod"] as const]);
    expect(patchOf(base, mine)).toEqual({ labels: { team: null, cost: "8", env: "prod" } });
  });
});

import { expect, it } from "vitest";
import { happeningsOf, marksOf } from "./marks.ts";
import type { AuditEntry, Eviction } from "./rows.ts";

const TIMES = ["2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z", "2026-01-01T02:00:00Z"];
const edit = (at: string, state: AuditEntry["state"] = "done") => ({ at, state }) as AuditEntry;
const eviction = (at: string) => ({ at }) as Eviction;

it("lists edits and evictions newest first, without writes that failed", () => {
  const all = happeningsOf(
    [edit("2026-01-01T00:30:00Z"), edit("2026-01-01T01:30:00Z", "failed")],
    [eviction("2026-01-01T02:10:00Z")],
  );
  expect(all.map(({ kind, at }) => [kind, at])).toEqual([
    ["eviction", "2026-01-01T02:10:00Z"],
    ["edit", "2026-01-01T00:30:00Z"],
  ]);
});

it("marks each step once for each kind, and nothing outside of the range", () => {
  const all = happeningsOf(
    [edit("2026-01-01T01:00:00Z"), edit("2025-12-31T23:59:59Z")],
    [
      eviction("2026-01-01T01:10:00Z"),
      eviction("2026-01-01T01:50:00Z"),
      eviction("2026-01-01T03:00:00Z"),
    ],
  );
  const marks = marksOf(all, TIMES, 3_600);
  expect(marks.map(({ kind, index, happenings }) => [kind, index, happenings.length])).toEqual([
    ["eviction", 1, 2],
    ["edit", 1, 1],
  ]);
  expect(marksOf(all, [], 3_600)).toEqual([]);
});

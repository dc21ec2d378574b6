import { expect, it } from "vitest";
import { DRAFT, pointerName, pointerValue } from "./changes.ts";

it("names the fields of a diff, with labels and the parent", () => {
  expect(["/quota/gpu", "/parent", "/labels/team~1owner", "/other"].map(pointerName)).toEqual([
    "GPU quota",
    "Parent queue",
    "Label team/owner",
    "other",
  ]);
});

it("shows amounts in their unit, and what is unset", () => {
  expect([
    pointerValue("/quota/memoryBytes", 64e9),
    pointerValue("/limit/gpu", null),
    pointerValue("/parent", null),
    pointerValue("/labels/a", "b"),
  ]).toEqual(["64 GB", "unset", "none", "b"]);
});

it("names three queues and counts the others", () => {
  expect(DRAFT.title(["a", "b", "c", "d", "e"])).toBe("Edit a, b, c and 2 more");
});

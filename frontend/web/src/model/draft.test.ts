import { describe, expect, it } from "vitest";
import { addEdit, type DraftEdit, editsOf, mergePatches } from "./draft.ts";

const update = (name: string, edit: DraftEdit["edit"]): DraftEdit => ({
  name,
  action: "update",
  edit,
});

describe("addEdit", () => {
  it("keeps one edit per queue, and the later value of a field", () => {
    const edits = addEdit(
      [update("a", { quota: { gpu: 1, cpuMilli: 2 }, priority: 5 }), update("b", { priority: 1 })],
      update("a", { quota: { gpu: null }, limit: { gpu: 4 } }),
    );
    expect(edits).toEqual([
      update("a", { quota: { gpu: null, cpuMilli: 2 }, priority: 5, limit: { gpu: 4 } }),
      update("b", { priority: 1 }),
    ]);
  });

  it("edits a queue that the draft creates, and forgets it when it is deleted", () => {
    const created: DraftEdit = { name: "new", action: "create", edit: { parent: "a" } };
    const edited = addEdit([created], update("new", { quota: { gpu: 2 } }));
    expect(edited).toEqual([{ ...created, edit: { parent: "a", quota: { gpu: 2 } } }]);
    expect(addEdit(edited, { name: "new", action: "delete", edit: {} })).toEqual([]);
  });

  it("replaces an edit by a deletion, and a deletion by an edit", () => {
    const deletion: DraftEdit = { name: "a", action: "delete", edit: {} };
    expect(addEdit([update("a", { priority: 1 })], deletion)).toEqual([deletion]);
    expect(addEdit([deletion], update("a", { priority: 1 }))).toEqual([
      update("a", { priority: 1 }),
    ]);
  });
});

it("a patch after another one has the effect of both", () => {
  expect(mergePatches({ labels: { a: "1" } }, { labels: { b: null }, displayName: null })).toEqual({
    labels: { a: "1", b: null },
    displayName: null,
  });
});

it("reads the edits of a change set with their defaults", () => {
  expect(editsOf({ edits: [{ name: "a" }] })).toEqual([update("a", {})]);
});

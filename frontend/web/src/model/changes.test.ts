import { describe, expect, it } from "vitest";
import { changeRow } from "../testing/changes.ts";
import { adminMe, editorMe } from "../testing/me.ts";
import { changeRights, lastUndoable } from "./changes.ts";

const QUEUES = new Map(
  [
    { name: "dept", parent: null },
    { name: "team", parent: "dept" },
    { name: "other", parent: null },
  ].map((queue) => [queue.name, queue]),
);
const EDITOR = editorMe("dept");

describe("changeRights", () => {
  it("an editor applies edits below the granted queue, and asks for approval of others", () => {
    const below = changeRow({ author: "ed", edits: [{ name: "team" }] });
    expect(changeRights(below, EDITOR, QUEUES)).toMatchObject({ edit: true, apply: true });
    const border = changeRow({ author: "ed", edits: [{ name: "team" }, { name: "dept" }] });
    expect(changeRights(border, EDITOR, QUEUES)).toMatchObject({ apply: false, request: true });
  });

  it("a change that needs approval by the policies is requested, also by an admin, and decided by another", () => {
    const edits = [{ name: "team" }];
    const draft = changeRow({ edits, needsApproval: true });
    expect(changeRights(draft, adminMe(), QUEUES)).toMatchObject({ apply: false, request: true });
    const requested = changeRow({ edits, needsApproval: true, state: "requested" });
    expect(changeRights(requested, adminMe(), QUEUES).decide).toBe(false);
    const other = { ...adminMe(), username: "grace" };
    expect(changeRights(requested, other, QUEUES).decide).toBe(true);
    const approved = changeRow({ edits, state: "approved" });
    expect(changeRights(approved, adminMe(), QUEUES).apply).toBe(true);
  });

  it("queues may be placed below a queue that the same change creates", () => {
    const edits = [
      { name: "new", action: "create" as const, edit: { parent: "dept" } },
      { name: "new-1", action: "create" as const, edit: { parent: "new" } },
    ];
    const change = changeRow({ author: "ed", edits });
    expect(changeRights(change, EDITOR, QUEUES).apply).toBe(true);
    const outside = changeRow({
      author: "ed",
      edits: [{ ...edits[0], name: "new", edit: { parent: "other" } }],
    });
    expect(changeRights(outside, EDITOR, QUEUES).apply).toBe(false);
  });

  it("a move needs the right at both places", () => {
    const move = changeRow({ author: "ed", edits: [{ name: "team", edit: { parent: "other" } }] });
    expect(changeRights(move, EDITOR, QUEUES).apply).toBe(false);
    expect(changeRights(move, adminMe(), QUEUES).apply).toBe(true);
  });

  it("only administrators decide, and only on what is requested", () => {
    const requested = changeRow({ author: "ed", state: "requested" });
    expect(changeRights(requested, adminMe(), QUEUES)).toMatchObject({ decide: true, edit: false });
    expect(changeRights(requested, EDITOR, QUEUES)).toMatchObject({ decide: false, apply: false });
  });

  it("an editor may only read another user's change", () => {
    const foreign = changeRow({ author: "somebody", edits: [{ name: "team" }] });
    expect(Object.values(changeRights(foreign, EDITOR, QUEUES))).toEqual(Array(5).fill(false));
  });
});

describe("lastUndoable", () => {
  const applied = (id: number, change: Parameters<typeof changeRow>[0] = {}) =>
    changeRow({ id, state: "applied", ...change });

  it("is the newest one that the user applied", () => {
    const rows = [changeRow({ id: 9 }), applied(8, { author: "ed" }), applied(7), applied(6)];
    expect(lastUndoable(rows, "admin")?.id).toBe(7);
  });

  it("is neither an undo nor the change that an undo reverted", () => {
    const rows = [applied(9, { reverts: 8 }), applied(8), applied(7)];
    expect(lastUndoable(rows, "admin")?.id).toBe(7);
    expect(lastUndoable(rows.slice(0, 2), "admin")).toBeNull();
  });
});

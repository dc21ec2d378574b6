import { describe, expect, it } from "vitest";
import { queueRow } from "../testing/rows.ts";
import {
  type Action,
  type Editing,
  readEditing,
  reduce,
  startEditing,
  versionOf,
} from "./editing.ts";
import type { Pointer } from "./values.ts";

/** The queue as its live row shows it: GPU quota 8 and limit 16, in the generation given. */
function version(generation: number, gpu: { quota?: number; limit?: number } = {}) {
  return versionOf(
    queueRow({
      name: "a",
      quota: { gpu: gpu.quota ?? 8 },
      limit: { gpu: gpu.limit ?? 16 },
      etag: `"${generation}"`,
    }),
  );
}

const typed = (text: string, pointer: Pointer = "/quota/gpu"): Action => ({
  type: "typed",
  pointer,
  entry: { kind: "value", text },
});
const rowArrived = (row: ReturnType<typeof version>): Action => ({ type: "rowArrived", row });
const accepted = (accepted: ReturnType<typeof version>): Action => ({
  type: "accepted",
  version: accepted,
  changed: true,
});

/** Start at generation 5 and apply actions; "send" sends what the entries say at that point. */
function run(...actions: (Action | "send")[]): Editing {
  return actions.reduce<Editing>(
    (editing, action) => {
      if (action !== "send") return reduce(editing, action);
      return reduce(editing, {
        type: "sent",
        from: editing.base,
        values: readEditing(editing).values,
      });
    },
    startEditing(version(5)),
  );
}

const text = ({ entries }: Editing, pointer: Pointer = "/quota/gpu") => entries.get(pointer)?.text;
const summary = (editing: Editing) => [
  editing.phase.kind,
  text(editing),
  readEditing(editing).changed,
];

describe("editing a queue", () => {
  it("is clean until a field differs, and clean again after undo", () => {
    expect(summary(run())).toEqual(["clean", "8", []]);
    expect(summary(run(typed("12")))).toEqual(["editing", "12", ["/quota/gpu"]]);
    expect(summary(run(typed("12"), typed("8")))).toEqual(["clean", "8", []]);
    expect(summary(run(typed("12"), { type: "undone" }))).toEqual(["clean", "8", []]);
  });

  it("counts an unreadable text as an edit that can be undone", () => {
    const editing = run(typed("8x"));
    expect(summary(editing)).toEqual(["editing", "8x", []]);
    expect([...readEditing(editing).errors]).toEqual([["/quota/gpu", "notANumber"]]);
    expect(summary(reduce(editing, { type: "undone" }))).toEqual(["clean", "8", []]);
  });

  it("awaits the live row after saving and completes when it arrives", () => {
    const saved = run(typed("12"), "send", accepted(version(6, { quota: 12 })));
    expect([summary(saved), saved.completed]).toEqual([["awaited", "12", []], null]);
    const older = reduce(saved, rowArrived(version(5)));
    expect(summary(older)).toEqual(["awaited", "12", []]);
    const done = reduce(older, rowArrived(version(6, { quota: 12 })));
    expect([summary(done), done.completed]).toEqual([
      ["clean", "12", []],
      { etag: '"6"', changed: true, inverse: { quota: { gpu: 8 } } },
    ]);
  });

  it("completes at once when the live row was faster than the answer", () => {
    const row = version(6, { quota: 12 });
    const done = run(typed("12"), "send", rowArrived(row), accepted(row));
    expect([done.phase.kind, done.completed?.etag]).toEqual(["clean", '"6"']);
  });

  it("can be saved a second time while the first save is still awaited", () => {
    const second = run(
      typed("12"),
      "send",
      accepted(version(6, { quota: 12 })),
      typed("13"),
      "send",
    );
    expect([second.phase.kind, second.base.etag]).toEqual(["saving", '"6"']);
    const done = [
      accepted(version(7, { quota: 13 })),
      rowArrived(version(6, { quota: 12 })),
      rowArrived(version(7, { quota: 13 })),
    ].reduce(reduce, second);
    expect([summary(done), done.completed?.etag]).toEqual([["clean", "13", []], '"7"']);
  });

  it("keeps what is typed while saving, as a change of the saved version", () => {
    const saved = run(
      typed("12"),
      "send",
      typed("20", "/limit/gpu"),
      accepted(version(6, { quota: 12 })),
      rowArrived(version(6, { quota: 12 })),
    );
    expect(summary(saved)).toEqual(["editing", "12", ["/limit/gpu"]]);
    expect(text(saved, "/limit/gpu")).toBe("20");
  });

  it("is editable after a failure, with the reason, until the next attempt", () => {
    const failure = { title: "No answer", detail: "timed out" };
    const failed = run(typed("12"), "send", { type: "failed", failure });
    expect([summary(failed), failed.failure]).toEqual([["editing", "12", ["/quota/gpu"]], failure]);
    expect(run(typed("12"), "send", { type: "failed", failure }, "send").failure).toBeNull();
  });

  it.each([
    ["saving", [typed("12"), "send"]],
    ["awaited", [typed("12"), "send", accepted(version(6, { quota: 12 }))]],
  ] as [string, (Action | "send")[]][])("marks a %s edit as slow", (kind, actions) => {
    const { phase } = run(...actions, { type: "slow" });
    expect(phase).toMatchObject({ kind, isSlow: true });
  });

  it("ignores slowness when nothing is under way", () => {
    expect(run({ type: "slow" }).phase).toEqual({ kind: "clean" });
  });
});

describe("changes by others", () => {
  it("appear in fields the user did not touch, whose text is left alone otherwise", () => {
    const editing = run(typed("16.0", "/limit/gpu"), rowArrived(version(6, { quota: 10 })));
    expect([summary(editing), text(editing, "/limit/gpu")]).toEqual([["clean", "10", []], "16.0"]);
  });

  it("keep the old base of a field both changed, so that saving finds the conflict", () => {
    const editing = run(typed("12"), rowArrived(version(6, { quota: 10 })));
    expect([summary(editing), editing.base.etag]).toEqual([
      ["editing", "12", ["/quota/gpu"]],
      '"5"',
    ]);
  });

  it("are taken over as soon as the user gives up the field", () => {
    const editing = run(typed("12"), rowArrived(version(6, { quota: 10 })), { type: "undone" });
    expect([summary(editing), editing.base.etag]).toEqual([["clean", "10", []], '"6"']);
  });

  it("do not replace a text that cannot be read yet", () => {
    expect(text(run(typed("12."), rowArrived(version(6, { quota: 10 }))))).toBe("12.");
  });

  it("wait while a save is under way", () => {
    const editing = run(typed("12"), "send", rowArrived(version(6, { limit: 40 })));
    expect([editing.phase.kind, editing.base.etag]).toEqual(["saving", '"5"']);
    const failed = reduce(editing, { type: "failed", failure: { title: "", detail: "" } });
    expect([failed.base.etag, text(failed, "/limit/gpu")]).toEqual(['"6"', "40"]);
  });
});

describe("a conflict", () => {
  const current = version(9, { quota: 10 });
  const conflict = {
    pointers: ["/quota/gpu" as const],
    base: version(5).values,
    theirs: current.values,
    mine: version(5, { quota: 12 }).values,
    current,
  };
  const conflicted = run(typed("12"), "send", { type: "conflicted", conflict });

  it("holds the dialog's data and returns to the same entries when closed", () => {
    expect(conflicted.phase).toEqual({ kind: "conflicted", conflict });
    expect(summary(reduce(conflicted, { type: "conflictClosed" }))).toEqual([
      "editing",
      "12",
      ["/quota/gpu"],
    ]);
  });

  it("is saved against the server's version, and the entries show what was chosen", () => {
    const resolved = reduce(conflicted, { type: "sent", from: current, values: current.values });
    expect([resolved.phase.kind, resolved.base.etag, text(resolved)]).toEqual([
      "saving",
      '"9"',
      "10",
    ]);
    const done = [accepted(current), rowArrived(current)].reduce(reduce, resolved);
    expect(summary(done)).toEqual(["clean", "10", []]);
  });
});

import { describe, expect, it } from "vitest";
import { mayActOnWork, mayEdit, mayPlaceUnder, maySeeUse } from "./rights.ts";
import type { Me } from "./rows.ts";

const QUEUES = new Map(
  [
    { name: "research", parent: null },
    { name: "vision", parent: "research" },
    { name: "speech", parent: "research" },
    { name: "detector", parent: "vision" },
  ].map((queue) => [queue.name, queue]),
);

function user(roles: Me["roles"], editQueues = true): Me {
  return {
    username: "u",
    displayName: "u",
    kind: "session",
    isAdmin: false,
    roles,
    seesOnly: null,
    rights: {
      editQueues,
      adminQueues: false,
      manageTokens: true,
      actOnWorkloads: true,
      simulate: true,
    },
  };
}

describe("rights in the forms", () => {
  const editor = user([{ role: "editor", subtree: "vision" }]);

  it("let an editor change what is below the granted queue, but not the queue itself", () => {
    expect(["detector", "vision", "speech"].map((name) => mayEdit(editor, QUEUES, name))).toEqual([
      true,
      false,
      false,
    ]);
  });

  it("let an editor place queues below the granted queue only", () => {
    const places = ["vision", "detector", "research", null];
    expect(places.map((parent) => mayPlaceUnder(editor, QUEUES, parent))).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });

  it("let admins do everything, viewers and unknown users nothing", () => {
    const admin = user([{ role: "admin", subtree: null }]);
    expect([mayEdit(admin, QUEUES, "research"), mayPlaceUnder(admin, QUEUES, null)]).toEqual([
      true,
      true,
    ]);
    const viewer = user([{ role: "viewer", subtree: null }], false);
    expect([mayEdit(viewer, QUEUES, "vision"), mayEdit(undefined, QUEUES, "vision")]).toEqual([
      false,
      false,
    ]);
  });

  it("let an editor act on the workloads of the granted queue itself", () => {
    expect(
      ["detector", "vision", "speech"].map((name) => mayActOnWork(editor, QUEUES, name)),
    ).toEqual([true, true, false]);
  });

  it("show the use of granted subtrees, and of everything to roles without one", () => {
    const seen = (me: Me | undefined) =>
      ["research", "vision", "detector"].filter((name) => maySeeUse(me, QUEUES, name));
    expect(seen(editor)).toEqual(["vision", "detector"]);
    expect(seen(user([{ role: "viewer", subtree: null }], false))).toHaveLength(3);
    expect(seen(undefined)).toEqual([]);
  });
});

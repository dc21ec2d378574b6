import type { Change } from "../model/rows.ts";

/** A change set for tests: a draft of `admin` without edits, unless the test says otherwise. */
export function changeRow(change: Partial<Change>): Change {
  return {
    id: 7,
    title: "Edit a",
    reason: "",
    author: "admin",
    state: "draft",
    queues: (change.edits ?? []).map(({ name }) => name),
    createdAt: "2026-01-01T00:00:00Z",
    changedAt: "2026-01-01T00:00:00Z",
    decidedBy: null,
    preview: null,
    reverts: null,
    error: null,
    policy: "warn",
    policies: {},
    needsApproval: false,
    drains: [],
    edits: [],
    plan: [],
    errors: [],
    warnings: [],
    stale: [],
    steps: [],
    ...change,
  };
}

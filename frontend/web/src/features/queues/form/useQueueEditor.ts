/**
 * Edit one queue: the reducer of model/editing.ts, the server's verdict on what has been typed,
 * and saving with a version check.
 */
import { useEffect, useEffectEvent, useMemo, useReducer } from "react";
import { patchQueue, type QueueAnswer } from "../../../api/client.ts";
import { ApiProblem } from "../../../api/problem.ts";
import { useVerdict } from "../../../editing/useVerdict.ts";
import {
  type Conflict,
  readEditing,
  reduce,
  type Saved,
  startEditing,
  type Version,
  versionOf,
} from "../../../model/editing.ts";
import type { Queue } from "../../../model/rows.ts";
import {
  type Entry,
  editableValues,
  mergeValues,
  type Pointer,
  patchOf,
  type Values,
} from "../../../model/values.ts";

const MERGE_ATTEMPTS = 5;
const SLOW_AFTER_MS = 10_000;

export function useQueueEditor(queue: Queue, onSaved: (saved: Saved) => void) {
  const [editing, dispatch] = useReducer(reduce, queue, (row) => startEditing(versionOf(row)));
  const { base, entries, phase, completed } = editing;
  const { values, errors, changed } = useMemo(() => readEditing(editing), [editing]);
  const patch = useMemo(() => patchOf(base.values, values), [base, values]);

  useEffect(() => dispatch({ type: "rowArrived", row: versionOf(queue) }), [queue]);

  const announce = useEffectEvent(onSaved);
  useEffect(() => {
    if (completed !== null) announce(completed);
  }, [completed]);

  // A new object with every save and with its acceptance, so that each gets its own ten seconds.
  const underWay =
    phase.kind === "saving" ? phase.sent : phase.kind === "awaited" ? phase.saved : null;
  useEffect(() => {
    if (underWay === null) return;
    const timer = window.setTimeout(() => dispatch({ type: "slow" }), SLOW_AFTER_MS);
    return () => window.clearTimeout(timer);
  }, [underWay]);

  const verdict = useVerdict(
    `PATCH ${queue.name} ${JSON.stringify(patch)}`,
    errors.size === 0 && changed.length > 0,
    (signal) => patchQueue(queue.name, patch, { etag: base.etag, dryRun: true, signal }),
  );

  async function save(from: Version, wanted: Values): Promise<void> {
    dispatch({ type: "sent", from, values: wanted });
    try {
      const outcome = await saveMerged(queue.name, from, wanted);
      if ("pointers" in outcome) dispatch({ type: "conflicted", conflict: outcome });
      else {
        const version = versionOf(outcome.queue);
        dispatch({ type: "accepted", version, changed: outcome.changed });
      }
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      dispatch({ type: "failed", failure: { title: error.body.title, detail: error.message } });
    }
  }

  const conflict = phase.kind === "conflicted" ? phase.conflict : null;
  return {
    entries,
    changed,
    errors,
    patch,
    verdict,
    phase,
    conflict,
    failure: editing.failure,
    setEntry: (pointer: Pointer, entry: Entry) => dispatch({ type: "typed", pointer, entry }),
    undo: () => dispatch({ type: "undone" }),
    save: () => save(base, values),
    /** Save with the choices made in the conflict dialog. */
    resolve: (chosen: Values) => {
      if (conflict !== null) void save(conflict.current, chosen);
    },
    dismissConflict: () => dispatch({ type: "conflictClosed" }),
  };
}

/**
 * Save; if others wrote meanwhile, merge and save again. Return the conflict if they changed a
 * field that this user changed too.
 */
async function saveMerged(
  name: string,
  from: Version,
  mine: Values,
): Promise<QueueAnswer | Conflict> {
  let base = from;
  let wanted = mine;
  for (let attempt = 1; ; attempt++) {
    try {
      const patch = patchOf(base.values, wanted);
      return await patchQueue(name, patch, { etag: base.etag, dryRun: false });
    } catch (error) {
      const current = currentQueue(error);
      if (current === null || attempt === MERGE_ATTEMPTS) throw error;
      const theirs = editableValues(current);
      const { merged, conflicts } = mergeValues(base.values, theirs, wanted);
      if (conflicts.length > 0) {
        const version = versionOf(current);
        return { pointers: conflicts, base: base.values, theirs, mine: wanted, current: version };
      }
      base = versionOf(current);
      wanted = merged;
    }
  }
}

/** Return the queue as it is now, if a save was refused because of its version; else null. */
function currentQueue(error: unknown): Queue | null {
  if (!(error instanceof ApiProblem) || error.status !== 412) return null;
  return (error.body.current as Queue | undefined) ?? null;
}

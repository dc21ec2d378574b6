/**
 * The life of one edit: the values it started from, what has been typed, the server's verdict
 * while typing, and saving with a version check. Others' changes flow into untouched fields.
 */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { patchQueue, type QueueAnswer } from "../../api/client.ts";
import { ApiProblem } from "../../api/problem.ts";
import {
  changedPointers,
  type Entries,
  type Entry,
  editableValues,
  entriesOf,
  isOlder,
  mergeValues,
  type Pointer,
  patchOf,
  readEntries,
  type Values,
} from "../../model/editing.ts";
import type { Queue } from "../../model/rows.ts";
import { useDebounced } from "../../ui/useDebounced.ts";

export type Conflict = {
  readonly pointers: readonly Pointer[];
  readonly base: Values;
  readonly theirs: Values;
  readonly mine: Values;
  readonly current: Queue;
};

type Base = { readonly values: Values; readonly etag: string };

const TRIES = 5;
const SEEN_WITHIN_MS = 10_000;

export function useQueueEditor(queue: Queue, onSaved: (answer: QueueAnswer) => void) {
  const [base, setBase] = useState<Base>(() => baseOf(queue));
  const [entries, setEntries] = useState<Entries>(() => entriesOf(base.values));
  const [saving, setSaving] = useState(false);
  const [awaited, setAwaited] = useState<QueueAnswer | null>(null);
  const [failure, setFailure] = useState<ApiProblem | null>(null);
  const [conflict, setConflict] = useState<Conflict | null>(null);
  const reading = useMemo(() => readEntries(entries), [entries]);
  const changed = changedPointers(base.values, reading.values);
  const patch = useMemo(() => patchOf(base.values, reading.values), [base, reading]);

  useEffect(() => {
    // The live row moved on: take over what others changed unless I changed it too. A pointer both
    // sides changed keeps its old base, so that saving still finds and shows the conflict.
    if (queue.etag === base.etag || saving || isOlder(queue.etag, base.etag)) return;
    const theirs = editableValues(queue);
    const mine = new Map([...base.values, ...reading.values]);
    const { conflicts } = mergeValues(base.values, theirs, mine);
    if (conflicts.length > 0) return;
    const quiet = changedPointers(base.values, theirs).filter(
      (pointer) => !changed.includes(pointer),
    );
    setBase({ values: theirs, etag: queue.etag });
    if (quiet.length > 0) {
      const fresh = entriesOf(theirs);
      setEntries(
        (old) =>
          new Map([...old, ...quiet.map((pointer) => [pointer, entry(fresh, pointer)] as const)]),
      );
    }
  }, [queue, base, reading, changed, saving]);

  useEffect(() => {
    // A write is done when the mirror has seen it, not when the server took it.
    if (awaited === null) return;
    const finish = () => {
      setAwaited(null);
      onSaved(awaited);
    };
    if (!isOlder(queue.etag, awaited.queue.etag)) {
      finish();
      return;
    }
    const timer = window.setTimeout(finish, SEEN_WITHIN_MS);
    return () => window.clearTimeout(timer);
  }, [awaited, queue.etag, onSaved]);

  const verdict = useVerdict(
    queue.name,
    JSON.stringify(patch),
    base.etag,
    reading.errors.size === 0,
  );

  async function save(from: Base, mine: Values): Promise<void> {
    setSaving(true);
    setFailure(null);
    try {
      const outcome = await saveMerged(queue.name, from, mine);
      if ("pointers" in outcome) {
        setConflict(outcome);
        return;
      }
      setConflict(null);
      const saved = baseOf(outcome.queue);
      setBase(saved);
      setEntries(entriesOf(saved.values));
      setAwaited(outcome);
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      setFailure(error);
    } finally {
      setSaving(false);
    }
  }

  return {
    entries,
    changed,
    errors: reading.errors,
    verdict,
    saving: saving || awaited !== null,
    failure,
    conflict,
    setEntry: (pointer: Pointer, value: Entry) =>
      setEntries((old) => new Map([...old, [pointer, value]])),
    reset: () => setEntries(entriesOf(base.values)),
    save: () => save(base, reading.values),
    /** Save with the choices made in the conflict dialog. */
    resolve: (chosen: Values) => {
      if (conflict === null) return;
      save(baseOf(conflict.current), chosen);
    },
    dismissConflict: () => setConflict(null),
  };
}

/** Save, merging with what others wrote meanwhile; status writes move the version but never conflict. */
async function saveMerged(name: string, from: Base, mine: Values): Promise<QueueAnswer | Conflict> {
  let base = from;
  let wanted = mine;
  for (let attempt = 1; ; attempt++) {
    try {
      return await patchQueue(name, patchOf(base.values, wanted), {
        etag: base.etag,
        dryRun: false,
      });
    } catch (error) {
      const current = currentOf(error);
      if (current === null || attempt === TRIES) throw error;
      const theirs = editableValues(current);
      const { merged, conflicts } = mergeValues(base.values, theirs, wanted);
      if (conflicts.length > 0) {
        return { pointers: conflicts, base: base.values, theirs, mine: wanted, current };
      }
      base = { values: theirs, etag: current.etag };
      wanted = merged;
    }
  }
}

/** What the server would say to this patch, asked while typing. */
function useVerdict(name: string, patch: string, etag: string, readable: boolean) {
  const asked = useDebounced(patch, 300);
  const query = useQuery({
    queryKey: ["queue-dry-run", name, asked],
    queryFn: async ({ signal }) => {
      const changes = JSON.parse(asked) as object;
      try {
        const answer = await patchQueue(name, changes, { etag, dryRun: true, signal });
        return { warnings: answer.warnings, errors: [] };
      } catch (error) {
        if (!(error instanceof ApiProblem)) throw error;
        // A version that moved on is dealt with when saving; it says nothing about the values.
        if (error.status === 412) return { warnings: [], errors: [] };
        return { warnings: [], errors: error.body.errors ?? [generalError(error)] };
      }
    },
    enabled: readable && asked !== "{}",
    staleTime: 5_000,
    retry: false,
  });
  const isCurrent = asked === patch && patch !== "{}" && readable;
  return isCurrent ? (query.data ?? null) : null;
}

function generalError(problem: ApiProblem) {
  return { pointer: "", code: problem.slug, message: problem.message };
}

function currentOf(error: unknown): Queue | null {
  if (!(error instanceof ApiProblem) || error.status !== 412) return null;
  return (error.body.current as Queue | undefined) ?? null;
}

function baseOf(queue: Queue): Base {
  return { values: editableValues(queue), etag: queue.etag };
}

function entry(entries: Entries, pointer: Pointer): Entry {
  return entries.get(pointer) ?? { kind: "unset", text: "" };
}

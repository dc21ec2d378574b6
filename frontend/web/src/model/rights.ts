/**
 * What the user may change, so that a form opens locked instead of being refused later. The same rules as
 * `queues/access/rights.py`, which decides: an editor may change what is strictly below a granted queue.
 */
import type { Me } from "./rows.ts";
import { ancestors, type NamedQueue } from "./tree.ts";

type Queues = ReadonlyMap<string, NamedQueue>;

/** Return whether the user may change this queue. */
export function mayEdit(me: Me | undefined, queues: Queues, name: string): boolean {
  return mayEditBelow(me, ancestors(queues, name));
}

/** Return whether the user may create queues below `parent`, or move them there; null is the top level. */
export function mayPlaceUnder(me: Me | undefined, queues: Queues, parent: string | null): boolean {
  return mayEditBelow(me, parent === null ? [] : [parent, ...ancestors(queues, parent)]);
}

/** Return whether a role lets the user edit below one of these queues; an admin may edit everywhere. */
function mayEditBelow(me: Me | undefined, queueNames: readonly string[]): boolean {
  return me?.rights.editQueues === true && covers(me, queueNames);
}

function covers(me: Me, queueNames: readonly string[]): boolean {
  return me.roles.some(
    ({ role, subtree }) =>
      role === "admin" || (role === "editor" && (subtree === null || queueNames.includes(subtree))),
  );
}

/** Return whether the user may hold, release and requeue the workloads of a queue. */
export function mayActOnWork(me: Me | undefined, queues: Queues, queue: string): boolean {
  return me?.rights.actOnWorkloads === true && covers(me, [queue, ...ancestors(queues, queue)]);
}

/** Return whether the user may see who used what of a queue: with roles for subtrees, only there. */
export function maySeeUse(me: Me | undefined, queues: Queues, name: string): boolean {
  if (me === undefined) return false;
  const path = [name, ...ancestors(queues, name)];
  return me.roles.some(({ subtree }) => subtree === null || path.includes(subtree));
}

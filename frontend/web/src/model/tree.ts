/** The queue hierarchy, built from the names of the parents. */
import type { Queue } from "./rows.ts";

export type NamedQueue = Pick<Queue, "name" | "parent">;

export type QueueTree = {
  readonly roots: readonly string[];
  readonly children: ReadonlyMap<string, readonly string[]>;
  readonly level: ReadonlyMap<string, number>;
};

/**
 * Build the tree. Orphans (their parent does not exist) are roots and come first, so that they are
 * noticed. A cycle of parents is cut open at one member, which becomes a root, so that none is lost.
 */
export function buildTree(queues: readonly NamedQueue[]): QueueTree {
  const parentOf = new Map(queues.map(({ name, parent }) => [name, parent]));
  const children = new Map<string, string[]>();
  const roots: string[] = [];
  for (const { name, parent } of queues) {
    if (parent === null || parent === "" || !parentOf.has(parent)) roots.push(name);
    else children.set(parent, [...(children.get(parent) ?? []), name]);
  }
  const byName = (a: string, b: string) => a.localeCompare(b, "en", { numeric: true });
  for (const names of children.values()) names.sort(byName);
  const isOrphan = (name: string) => Boolean(parentOf.get(name));
  roots.sort((a, b) => Number(isOrphan(b)) - Number(isOrphan(a)) || byName(a, b));

  const level = new Map<string, number>();
  const visit = (name: string, depth: number) => {
    if (level.has(name)) return;
    level.set(name, depth);
    for (const child of children.get(name) ?? []) visit(child, depth + 1);
  };
  for (const root of roots) visit(root, 1);
  for (const name of [...parentOf.keys()].sort(byName)) {
    if (level.has(name)) continue;
    // Only cycles are left. Cut this one open here.
    const parent = parentOf.get(name) ?? "";
    children.set(
      parent,
      (children.get(parent) ?? []).filter((child) => child !== name),
    );
    roots.push(name);
    visit(name, 1);
  }
  return { roots, children, level };
}

export function isLeaf(tree: QueueTree, name: string): boolean {
  return (tree.children.get(name)?.length ?? 0) === 0;
}

/** Return the names of a queue's ancestors, nearest first. */
export function ancestors(queues: ReadonlyMap<string, NamedQueue>, name: string): string[] {
  const names: string[] = [];
  let parent = queues.get(name)?.parent ?? null;
  while (parent !== null && queues.has(parent) && !names.includes(parent)) {
    names.push(parent);
    parent = queues.get(parent)?.parent ?? null;
  }
  return names;
}

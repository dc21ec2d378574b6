/** The queue hierarchy as the tree shows it, from rows that know only their parent's name. */
import type { Queue } from "./rows.ts";

export type QueueTree = {
  readonly roots: readonly string[];
  readonly children: ReadonlyMap<string, readonly string[]>;
  readonly level: ReadonlyMap<string, number>;
};

/**
 * Build the tree. Orphans (their parent does not exist) come first as roots, so that they are
 * seen; members of a parent cycle are hung up as roots too instead of vanishing.
 */
export function buildTree(queues: ReadonlyMap<string, Queue>): QueueTree {
  const children = new Map<string, string[]>();
  const roots: string[] = [];
  for (const queue of queues.values()) {
    const parent = queue.parent;
    if (parent === null || parent === "" || !queues.has(parent)) roots.push(queue.name);
    else children.set(parent, [...(children.get(parent) ?? []), queue.name]);
  }
  const byName = (a: string, b: string) => a.localeCompare(b, "en", { numeric: true });
  for (const names of children.values()) names.sort(byName);
  const isOrphan = (name: string) => Boolean(queues.get(name)?.parent);
  roots.sort((a, b) => Number(isOrphan(b)) - Number(isOrphan(a)) || byName(a, b));

  const level = new Map<string, number>();
  const visit = (name: string, depth: number) => {
    if (level.has(name)) return;
    level.set(name, depth);
    for (const child of children.get(name) ?? []) visit(child, depth + 1);
  };
  for (const root of roots) visit(root, 1);
  for (const name of [...queues.keys()].sort(byName)) {
    if (level.has(name)) continue;
    // Only cycles are left: cut this one open here.
    const parent = queues.get(name)?.parent ?? "";
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

/** Names of a queue's ancestors, nearest first. */
export function ancestors(queues: ReadonlyMap<string, Queue>, name: string): string[] {
  const found: string[] = [];
  let parent = queues.get(name)?.parent ?? null;
  while (parent !== null && queues.has(parent) && !found.includes(parent)) {
    found.push(parent);
    parent = queues.get(parent)?.parent ?? null;
  }
  return found;
}

import { groupTitle, nodesText } from "../../i18n/nodes.ts";
import type { Node } from "../../model/rows.ts";

export type Grouping = "model" | "rack" | "zone" | "pool";

export type Line =
  | { readonly kind: "group"; readonly key: string; readonly title: string; readonly note: string }
  | { readonly kind: "tiles"; readonly key: string; readonly nodes: readonly Node[] };

const COLLATOR = new Intl.Collator("en", { numeric: true });

/** Return the time in ms until which a node gets no new pods, null if it gets some. */
export function restEnd(node: Node, now: number): number | null {
  const end = node.rest == null ? 0 : Date.parse(node.rest.until);
  return end > now ? end : null;
}

/** Lay nodes out as lines: a heading per group, then rows of `perLine` tiles. */
export function layOut(nodes: readonly Node[], grouping: Grouping, perLine: number): Line[] {
  const groups = new Map<string, Node[]>();
  for (const node of nodes) {
    const key = node[grouping];
    const members = groups.get(key);
    if (members === undefined) groups.set(key, [node]);
    else members.push(node);
  }
  const lines: Line[] = [];
  // The group without a name (nodes without GPUs, or without the label) comes last.
  const titles = [...groups.keys()].sort(
    (a, b) => Number(a === "") - Number(b === "") || COLLATOR.compare(a, b),
  );
  for (const title of titles) {
    const members = (groups.get(title) ?? []).sort((a, b) => COLLATOR.compare(a.name, b.name));
    lines.push({
      kind: "group",
      key: `group ${title}`,
      title: groupTitle(title, grouping),
      note: groupNote(members),
    });
    for (let at = 0; at < members.length; at += perLine) {
      lines.push({ kind: "tiles", key: `${title} ${at}`, nodes: members.slice(at, at + perLine) });
    }
  }
  return lines;
}

export function groupNote(nodes: readonly Node[]): string {
  const total = nodes.reduce((sum, node) => sum + node.gpuTotal, 0);
  const allocated = nodes.reduce((sum, node) => sum + node.gpuAllocated, 0);
  return nodesText(nodes.length, allocated, total);
}

/** Return the cell that a key leads to; up and down lead to the tile above or below. */
export function nextCell(
  nodes: readonly Node[],
  perLine: number,
  from: { node: string; index: number },
  key: string,
): { node: string; index: number } | null {
  const at = nodes.findIndex((node) => node.name === from.node);
  const node = nodes[at];
  if (node === undefined) return null;
  const last = node.devices.length - 1;
  // Nodes without devices have no cell to focus and are skipped.
  const walk = (step: number, index: number) => {
    for (let to = at + step; nodes[to] !== undefined; to += step) {
      const devices = nodes[to]?.devices.length ?? 0;
      if (devices > 0) return { node: nodes[to]?.name ?? "", index: Math.min(index, devices - 1) };
    }
    return null;
  };
  switch (key) {
    case "ArrowRight":
      return from.index < last ? { node: node.name, index: from.index + 1 } : walk(1, 0);
    case "ArrowLeft":
      return from.index > 0
        ? { node: node.name, index: from.index - 1 }
        : walk(-1, Number.MAX_SAFE_INTEGER);
    case "ArrowDown":
      return walk(perLine, from.index);
    case "ArrowUp":
      return walk(-perLine, from.index);
    case "Home":
      return { node: node.name, index: 0 };
    case "End":
      return { node: node.name, index: last };
    default:
      return null;
  }
}

/** The queue tree as an icicle: each queue is as wide as its amount, below its parent. */
import type { QueueTree } from "./tree.ts";

export type Slice = {
  readonly name: string;
  readonly depth: number;
  /** Left end and width as parts of the whole. */
  readonly left: number;
  readonly width: number;
};

/** Return the slices of all queues with an amount, parents before children and siblings by size. */
export function slicesOf(tree: QueueTree, amountOf: (name: string) => number): Slice[] {
  const slices: Slice[] = [];
  const place = (names: readonly string[], depth: number, left: number, width: number) => {
    const sized = names
      .map((name) => ({ name, amount: Math.max(0, amountOf(name)) }))
      .filter(({ amount }) => amount > 0)
      .sort((a, b) => b.amount - a.amount || (a.name < b.name ? -1 : 1));
    const sum = sized.reduce((total, { amount }) => total + amount, 0);
    let at = left;
    for (const { name, amount } of sized) {
      const part = (width * amount) / sum;
      slices.push({ name, depth, left: at, width: part });
      place(tree.children.get(name) ?? [], depth + 1, at, part);
      at += part;
    }
  };
  place(tree.roots, 0, 0, 1);
  return slices;
}

/** Return the slice that an arrow key leads to, or null at a border. */
export function besideSlice(slices: readonly Slice[], from: Slice, key: string): Slice | null {
  const level = (depth: number) => slices.filter((slice) => slice.depth === depth);
  const same = level(from.depth);
  const at = same.indexOf(from);
  const middle = from.left + from.width / 2;
  switch (key) {
    case "ArrowRight":
      return same[at + 1] ?? null;
    case "ArrowLeft":
      return same[at - 1] ?? null;
    case "ArrowUp":
      return (
        level(from.depth - 1).find((s) => s.left <= middle && middle <= s.left + s.width) ?? null
      );
    case "ArrowDown":
      return (
        level(from.depth + 1).find(
          (s) => s.left + s.width > from.left + 1e-9 && s.left < from.left + from.width - 1e-9,
        ) ?? null
      );
    default:
      return null;
  }
}

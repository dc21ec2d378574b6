/**
 * The hue and pattern of every queue, the same on every page.
 *
 * Eight hues can be told apart, so a ninth queue gets a used hue with a pattern. A queue prefers
 * the hue that its name hashes to. Older queues choose first, so a new queue changes no other.
 */
export const HUES = 8;
export const PATTERNS = 4;

export type Hue = { readonly hue: number; readonly pattern: number };

export const NO_HUE: Hue = { hue: -1, pattern: 0 };

export function assignHues(
  queues: Iterable<{ name: string; createdAt: string }>,
): ReadonlyMap<string, Hue> {
  const oldestFirst = [...queues].sort(
    (a, b) => a.createdAt.localeCompare(b.createdAt) || a.name.localeCompare(b.name),
  );
  const taken = new Set<number>();
  const hues = new Map<string, Hue>();
  for (const { name } of oldestFirst) {
    if (taken.size === HUES * PATTERNS) taken.clear();
    const slot = freeSlot(hash(name) % HUES, taken);
    taken.add(slot);
    hues.set(name, { hue: slot % HUES, pattern: Math.floor(slot / HUES) });
  }
  return hues;
}

function freeSlot(preferred: number, taken: ReadonlySet<number>): number {
  for (let pattern = 0; pattern < PATTERNS; pattern++) {
    for (let step = 0; step < HUES; step++) {
      const slot = pattern * HUES + ((preferred + step) % HUES);
      if (!taken.has(slot)) return slot;
    }
  }
  return preferred;
}

function hash(text: string): number {
  let value = 2_166_136_261;
  for (let index = 0; index < text.length; index++) {
    value = Math.imul(value ^ text.charCodeAt(index), 16_777_619);
  }
  return value >>> 0;
}

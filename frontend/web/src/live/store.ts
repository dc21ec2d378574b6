/**
 * The rows of one topic, patched by key.
 *
 * Rows are immutable values in a mutable map: a patch replaces only the rows it names, so a
 * component that watches one row is left alone by changes of its ten thousand neighbours.
 * While held (the user paused), the truth goes on being patched and the view stays as it was;
 * the keys that would have moved are counted.
 */
import type { AsOf, Change, Row } from "./protocol.ts";

export type Listener = () => void;

export class RowStore {
  #truth = new Map<string, Row>();
  #view = this.#truth;
  #waiting = new Set<string>();
  #version = 0;
  #asOf: AsOf | null = null;
  #viewAsOf: AsOf | null = null;
  #loaded = false;
  readonly #keep: number;
  readonly #listeners = new Set<Listener>();
  readonly #rowListeners = new Map<string, Set<Listener>>();

  /** `keep`: how many rows of a rolling topic to hold; its keys are numbers, and the lowest go. */
  constructor(keep = Number.POSITIVE_INFINITY) {
    this.#keep = keep;
  }

  /** Grows with every visible change; the cheap thing to compare. */
  get version(): number {
    return this.#version;
  }

  get rows(): ReadonlyMap<string, Row> {
    return this.#view;
  }

  get asOf(): AsOf | null {
    return this.#viewAsOf;
  }

  /** False until the first whole picture has come. */
  get loaded(): boolean {
    return this.#loaded;
  }

  /** Rows that changed since the view was held. */
  get waiting(): number {
    return this.#waiting.size;
  }

  row(key: string): Row | undefined {
    return this.#view.get(key);
  }

  /** Put a whole picture in place of the old one, keeping the identity of rows that are equal. */
  replace(items: readonly Row[], asOf: AsOf): void {
    const next = new Map<string, Row>();
    const touched: string[] = [];
    for (const item of items) {
      const old = this.#truth.get(item.k);
      const same = old !== undefined && isSame(old, item);
      next.set(item.k, same ? old : item);
      if (!same) touched.push(item.k);
    }
    for (const key of this.#truth.keys()) if (!next.has(key)) touched.push(key);
    const held = this.#isHeld;
    this.#truth = next;
    // The first picture is shown even while paused: there is nothing yet that could stand still.
    const first = !this.#loaded;
    if (held && first) this.#view = new Map(next);
    else if (!held) this.#view = next;
    this.#loaded = true;
    this.#moved(touched, asOf, held && !first);
  }

  /** Apply one delta; of the same key a delete wins over a change. */
  patch(up: readonly Change[], del: readonly string[], asOf: AsOf): void {
    const touched: string[] = [];
    for (const change of up) {
      const old = this.#truth.get(change.k);
      const row: Record<string, unknown> = { ...old, ...change.set, k: change.k };
      for (const field of change.unset) delete row[field];
      this.#truth.set(change.k, row as Row);
      touched.push(change.k);
    }
    for (const key of del) if (this.#truth.delete(key)) touched.push(key);
    for (const key of this.#surplus()) if (this.#truth.delete(key)) touched.push(key);
    this.#moved(touched, asOf, this.#isHeld);
  }

  hold(): void {
    if (!this.#isHeld) this.#view = new Map(this.#truth);
  }

  release(): void {
    if (!this.#isHeld) return;
    const touched = [...this.#waiting];
    this.#waiting = new Set();
    this.#view = this.#truth;
    this.#moved(touched, this.#asOf ?? EPOCH, false);
  }

  subscribe(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  subscribeRow(key: string, listener: Listener): () => void {
    const listeners = this.#rowListeners.get(key) ?? new Set();
    this.#rowListeners.set(key, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.#rowListeners.delete(key);
    };
  }

  get #isHeld(): boolean {
    return this.#view !== this.#truth;
  }

  #surplus(): string[] {
    const surplus = this.#truth.size - this.#keep;
    if (surplus <= 0) return [];
    return [...this.#truth.keys()].sort((a, b) => Number(a) - Number(b)).slice(0, surplus);
  }

  #moved(touched: readonly string[], asOf: AsOf, held: boolean): void {
    this.#asOf = asOf;
    if (held) {
      for (const key of touched) this.#waiting.add(key);
    } else {
      this.#viewAsOf = asOf;
      for (const key of touched)
        for (const listener of this.#rowListeners.get(key) ?? []) listener();
    }
    this.#version += 1;
    for (const listener of this.#listeners) listener();
  }
}

const EPOCH: AsOf = { time: null, session: null, rv: null };

/** Structural equality of JSON values; a snapshot after a reset mostly repeats what is known. */
export function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    return a.every((item, index) => isSame(item, b[index]));
  }
  const left = a as Record<string, unknown>;
  const right = b as Record<string, unknown>;
  const keys = Object.keys(left);
  if (keys.length !== Object.keys(right).length) return false;
  return keys.every((key) => key in right && isSame(left[key], right[key]));
}

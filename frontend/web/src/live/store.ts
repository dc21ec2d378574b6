/**
 * The rows of one topic, patched by key.
 *
 * A patch makes a new map but keeps every row it does not name, so a memoised component whose row
 * stayed the same is not drawn again. While the store is held (the user paused), `rows` stays as it was;
 * changes are still applied to a hidden copy, which `release` shows, and the changed keys are counted.
 */
import { isSame } from "../model/same.ts";
import type { AsOf, Change, Row } from "./protocol.ts";
import { RowMap } from "./rowMap.ts";

/** What components see of a topic. It never changes; a later state is another object. */
export type Picture<T> = {
  readonly rows: ReadonlyMap<string, T>;
  /** False until the first complete snapshot has arrived. */
  readonly loaded: boolean;
  /** Whether the rows are only the beginning of the first snapshot. */
  readonly isPartial: boolean;
  readonly asOf: AsOf | null;
};

type State = Picture<Row> & { readonly rows: RowMap<Row> };

export const NOTHING: State = {
  rows: RowMap.of<Row>([]),
  loaded: false,
  isPartial: false,
  asOf: null,
};

export class RowStore {
  #latest = NOTHING;
  #visible = NOTHING;
  #isHeld = false;
  /** The keys that changed while the store was held. */
  #unseen = new Set<string>();
  readonly #limit: number;

  /** `limit`: how many rows of a rolling topic to keep. Its keys are numbers; the lowest go first. */
  constructor(limit = Number.POSITIVE_INFINITY) {
    this.#limit = limit;
  }

  get picture(): Picture<Row> {
    return this.#visible;
  }

  get rows(): ReadonlyMap<string, Row> {
    return this.#visible.rows;
  }

  get asOf(): AsOf | null {
    return this.#visible.asOf;
  }

  get loaded(): boolean {
    return this.#visible.loaded;
  }

  /** The number of rows that changed since the store was held. */
  get unseenCount(): number {
    return this.#unseen.size;
  }

  row(key: string): Row | undefined {
    return this.#visible.rows.get(key);
  }

  /** Show the beginning of the first snapshot, so that a page with many rows need not wait for the end. */
  begin(items: readonly Row[], asOf: AsOf): void {
    if (this.#latest.loaded) return;
    const rows = RowMap.of(items.map((item): [string, Row] => [item.k, item]));
    this.#latest = { rows, loaded: false, isPartial: true, asOf };
    this.#visible = this.#latest;
  }

  /** Replace all rows by a snapshot, keeping the identity of rows that are equal. */
  replace(items: readonly Row[], asOf: AsOf): void {
    const { rows, loaded } = this.#latest;
    const next: [string, Row][] = [];
    const changedKeys: string[] = [];
    for (const item of items) {
      const old = rows.get(item.k);
      const same = old !== undefined && isSame(old, item);
      next.push([item.k, same ? old : item]);
      if (!same) changedKeys.push(item.k);
    }
    const map = RowMap.of(next);
    for (const key of rows.keys()) if (!map.has(key)) changedKeys.push(key);
    this.#latest = { rows: map, loaded: true, isPartial: false, asOf };
    // The first snapshot is shown even while held, because there is no older state to keep.
    if (this.#isHeld && !loaded) this.#visible = this.#latest;
    else this.#publish(changedKeys);
  }

  /** Apply one delta; a delete wins over a change of the same key. */
  patch(up: readonly Change[], del: readonly string[], asOf: AsOf): void {
    const { rows } = this.#latest;
    const changed = new Map<string, Row>();
    for (const change of up) {
      const old = changed.get(change.k) ?? rows.get(change.k);
      const row: { k: string; [field: string]: unknown } = { ...old, ...change.set, k: change.k };
      for (const field of change.unset) delete row[field];
      changed.set(change.k, row);
    }
    const patched = rows.change(changed, del);
    const surplus = this.#surplus(patched);
    const limited = surplus.length === 0 ? patched : patched.change([], surplus);
    this.#latest = { ...this.#latest, rows: limited, asOf };
    this.#publish([...changed.keys(), ...del.filter((key) => rows.has(key)), ...surplus]);
  }

  hold(): void {
    this.#isHeld = true;
  }

  release(): void {
    this.#isHeld = false;
    this.#unseen = new Set();
    this.#visible = this.#latest;
  }

  #publish(changedKeys: readonly string[]): void {
    if (this.#isHeld) for (const key of changedKeys) this.#unseen.add(key);
    else this.#visible = this.#latest;
  }

  #surplus(rows: RowMap<Row>): string[] {
    const surplus = rows.size - this.#limit;
    if (surplus <= 0) return [];
    return [...rows.keys()].sort((a, b) => Number(a) - Number(b)).slice(0, surplus);
  }
}

/**
 * An immutable map from keys to rows that is cheap to change.
 *
 * React compares identities, so each version of a topic must be a new object; copying ten thousand
 * entries four times a second would be slow. The entries are therefore spread over buckets, and a
 * change copies only the buckets it touches. The order of iteration means nothing.
 */
const BUCKETS = 256;

type Bucket<T> = ReadonlyMap<string, T>;

export class RowMap<T> implements ReadonlyMap<string, T> {
  readonly size: number;
  readonly #buckets: readonly (Bucket<T> | undefined)[];

  private constructor(buckets: readonly (Bucket<T> | undefined)[], size: number) {
    this.#buckets = buckets;
    this.size = size;
  }

  static of<T>(entries: Iterable<readonly [string, T]>): RowMap<T> {
    return new RowMap<T>([], 0).change(entries, []);
  }

  /** Return a map with these entries set, and then these keys deleted. */
  change(set: Iterable<readonly [string, T]>, deleted: Iterable<string>): RowMap<T> {
    const buckets = [...this.#buckets];
    const copies = new Map<number, Map<string, T>>();
    const writable = (key: string): Map<string, T> => {
      const index = bucketOf(key);
      const copy = copies.get(index) ?? new Map(buckets[index]);
      copies.set(index, copy);
      buckets[index] = copy;
      return copy;
    };
    let size = this.size;
    for (const [key, row] of set) {
      const bucket = writable(key);
      if (!bucket.has(key)) size += 1;
      bucket.set(key, row);
    }
    for (const key of deleted) if (writable(key).delete(key)) size -= 1;
    return new RowMap(buckets, size);
  }

  get(key: string): T | undefined {
    return this.#buckets[bucketOf(key)]?.get(key);
  }

  has(key: string): boolean {
    return this.#buckets[bucketOf(key)]?.has(key) ?? false;
  }

  *entries(): Generator<[string, T], undefined> {
    for (const bucket of this.#buckets) if (bucket !== undefined) yield* bucket;
  }

  *keys(): Generator<string, undefined> {
    for (const bucket of this.#buckets) if (bucket !== undefined) yield* bucket.keys();
  }

  *values(): Generator<T, undefined> {
    for (const bucket of this.#buckets) if (bucket !== undefined) yield* bucket.values();
  }

  [Symbol.iterator](): Generator<[string, T], undefined> {
    return this.entries();
  }

  forEach(visit: (row: T, key: string, map: ReadonlyMap<string, T>) => void): void {
    for (const [key, row] of this) visit(row, key, this);
  }
}

function bucketOf(key: string): number {
  let hash = 0;
  for (let index = 0; index < key.length; index++) {
    hash = (Math.imul(hash, 31) + key.charCodeAt(index)) | 0;
  }
  // Fold the upper bits in, because keys often differ only in their last characters.
  return (hash ^ (hash >>> 8) ^ (hash >>> 16)) & (BUCKETS - 1);
}

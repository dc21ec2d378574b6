/** Edits of a shard's spec, collected as a merge patch: null removes a field, what is not named stays. */
import type { OptionSetting, Shard, ShardSettings } from "./rows.ts";

export type SpecPatch = { readonly [field: string]: unknown };
type Path = readonly string[];

export const DEFAULT_SHARD = "default";
export const STRATEGIES = ["binpack", "spread", "fragmentation"] as const;

/** Return what a patch or a spec has at a path; undefined where it has nothing. */
export function fieldAt(value: unknown, path: Path): unknown {
  const [first, ...rest] = path;
  if (first === undefined) return value;
  return isObject(value) ? fieldAt(value[first], rest) : undefined;
}

/** Return a patch that gives the field a value, or, with undefined, leaves it as it is. */
export function withField(patch: SpecPatch, path: Path, value: unknown): SpecPatch {
  const [first, ...rest] = path;
  if (first === undefined) return patch;
  const inner = patch[first];
  const next = rest.length === 0 ? value : withField(isObject(inner) ? inner : {}, rest, value);
  const { [first]: _, ...others } = patch;
  const isEmpty = next === undefined || (rest.length > 0 && isObject(next) && isEmptyObject(next));
  return isEmpty ? others : { ...others, [first]: next };
}

/** Return how many fields a patch changes. */
export function fieldCount(patch: SpecPatch): number {
  return Object.values(patch).reduce<number>(
    (sum, value) => sum + (isObject(value) ? fieldCount(value) : 1),
    0,
  );
}

/** Return a patch as a spec of its own, for a shard that has no object yet: what it removes is not there. */
export function withoutNulls(patch: SpecPatch): SpecPatch {
  return Object.fromEntries(
    Object.entries(patch)
      .filter(([, value]) => value !== null)
      .map(([field, value]) => [field, isObject(value) ? withoutNulls(value) : value]),
  );
}

/** Return the strategy by which nodes are chosen for pods of a kind, as the spec states it or by default. */
export function strategyOf(spec: SpecPatch, kind: "gpu" | "cpu"): string {
  return String(fieldAt(spec, ["placementStrategy", kind]) || STRATEGIES[0]);
}

/** Return the value of an option as a shard states it: all options are texts there. */
export function optionText({ kind, value }: Pick<OptionSetting, "kind" | "value">): string {
  return kind === "duration" ? `${value}s` : String(value);
}

/** Return all shards by name; the default one runs without an object too, which is then null. */
export function shardsByName(shards: readonly Shard[]): ReadonlyMap<string, Shard | null> {
  const byName = new Map<string, Shard | null>([[DEFAULT_SHARD, null]]);
  for (const shard of shards) byName.set(shard.name, shard);
  return byName;
}

/** Return the first condition that is not as it should be; the object is being worked on while `Reconciling` is true. */
export function openCondition({ conditions }: Pick<Shard, "conditions">) {
  return conditions.find(
    ({ type, status }) => status !== (type === "Reconciling" ? "False" : "True"),
  );
}

/** Return the actions that run, in the order of their work, and then the others. */
export function actionsInOrder({ actions }: ShardSettings): ShardSettings["actions"] {
  return [...actions].sort((a, b) => Number(b.enabled) - Number(a.enabled));
}

/** Return the spec that a text in JSON states, or null if it is no object. */
export function readSpec(text: string): SpecPatch | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

function isObject(value: unknown): value is SpecPatch {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isEmptyObject(value: SpecPatch): boolean {
  return Object.keys(value).length === 0;
}

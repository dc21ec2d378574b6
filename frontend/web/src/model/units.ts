/** Amounts between the base units of the API (GPUs, millicores, bytes) and the units people type. */
import type { Resource } from "./rows.ts";

const SCALE: Record<Resource, number> = { gpu: 1, cpuMilli: 1_000, memoryBytes: 1e9 };

/** Convert from the base unit to the unit people type. */
export function toShown(resource: Resource, value: number): number {
  return value / SCALE[resource];
}

/** Convert back to the base unit. Base amounts are integers, except that GPUs have 3 decimals. */
export function fromShown(resource: Resource, shown: number): number {
  const base = shown * SCALE[resource];
  return resource === "gpu" ? Math.round(base * 1_000) / 1_000 : Math.round(base);
}

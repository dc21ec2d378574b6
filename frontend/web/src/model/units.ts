/** Numbers as people read them. Amounts arrive in base units: GPUs, millicores, bytes. */
import type { Bound, Resource } from "./rows.ts";

const trimmed = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export function count(value: number): string {
  return whole.format(value);
}

export function gpus(value: number): string {
  return trimmed.format(value);
}

export function cores(milli: number): string {
  return trimmed.format(milli / 1_000);
}

/** Decimal gigabytes, as the scheduler's own messages count them. */
export function gigabytes(bytes: number): string {
  return trimmed.format(bytes / 1e9);
}

export function gibibytes(bytes: number): string {
  return `${whole.format(bytes / 2 ** 30)} GiB`;
}

const SCALE: Record<Resource, number> = { gpu: 1, cpuMilli: 1_000, memoryBytes: 1e9 };
export const UNIT: Record<Resource, string> = { gpu: "GPUs", cpuMilli: "cores", memoryBytes: "GB" };
export const RESOURCE_NAME: Record<Resource, string> = {
  gpu: "GPU",
  cpuMilli: "CPU",
  memoryBytes: "Memory",
};

/** From base units to the unit people type, and back; a base amount is whole except for GPUs. */
export function toShown(resource: Resource, value: number): number {
  return value / SCALE[resource];
}

export function fromShown(resource: Resource, shown: number): number {
  const base = shown * SCALE[resource];
  return resource === "gpu" ? Math.round(base * 1_000) / 1_000 : Math.round(base);
}

export function amount(resource: Resource, value: number): string {
  return trimmed.format(toShown(resource, value));
}

/** A bound in words: unset and unlimited are different things and never a number. */
export function bound(resource: Resource, value: Bound | undefined): string {
  if (value === undefined) return "unset";
  if (value === "unlimited") return "unlimited";
  return amount(resource, value);
}

export function milliseconds(ms: number): string {
  if (ms < 1) return "<1 ms";
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(2)} s`;
}

/** A span in its two largest units: `45 s`, `12 min`, `3 h 05 min`, `2 d 4 h`. */
export function span(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours} h ${String(minutes % 60).padStart(2, "0")} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

export function clockTime(iso: string): string {
  return new Date(iso).toLocaleTimeString("en-GB", { hour12: false });
}

export function dateTime(iso: string): string {
  return new Date(iso).toLocaleString("en-GB", { hour12: false });
}

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

/** A GPU product without its maker, which is the same on nearly every line. */
export function modelName(model: string): string {
  return model.replace(/^NVIDIA-/, "") || "Unknown model";
}

/** Numbers, times and amounts as text. Amounts arrive in base units: GPUs, millicores, bytes. */
import type { Bound, Resource } from "../model/rows.ts";
import { toShown } from "../model/units.ts";

const trimmed = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export function count(value: number): string {
  return whole.format(value);
}

/** A number of GPUs without its unit. */
export function gpus(value: number): string {
  return trimmed.format(value);
}

export function cores(milli: number): string {
  return trimmed.format(milli / 1_000);
}

export type MemoryUnit = "GB" | "GiB";
const BYTES: Readonly<Record<MemoryUnit, number>> = { GB: 1e9, GiB: 2 ** 30 };
let memoryUnit: MemoryUnit = "GB";

/** Show memory in this unit. Forms stay with gigabytes, because the cluster stores megabytes. */
export function showMemoryIn(unit: MemoryUnit): void {
  memoryUnit = unit;
}

/** A size of memory without its unit, which is `UNIT.memoryBytes`. */
export function memory(bytes: number): string {
  return trimmed.format(bytes / BYTES[memoryUnit]);
}

export function gibibytes(bytes: number): string {
  return `${whole.format(bytes / 2 ** 30)} GiB`;
}

/** The units that amounts are shown in. */
export const UNIT: Readonly<Record<Resource, string>> = {
  gpu: "GPUs",
  cpuMilli: "cores",
  get memoryBytes() {
    return memoryUnit;
  },
};
/** The units that people type amounts in, unless they type another one behind the number. */
export const TYPED_UNIT: Readonly<Record<Resource, string>> = {
  gpu: "GPUs",
  cpuMilli: "cores",
  memoryBytes: "GB",
};
export const RESOURCE_NAME: Record<Resource, string> = {
  gpu: "GPU",
  cpuMilli: "CPU",
  memoryBytes: "Memory",
};

export function amount(resource: Resource, value: number): string {
  return resource === "memoryBytes" ? memory(value) : trimmed.format(toShown(resource, value));
}

/** A bound as text. Unset and unlimited are different things, and neither is a number. */
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

/** A duration in its two largest units: `45 s`, `12 min`, `3 h 05 min`, `2 d 4 h`. */
const wholePercent = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 0 });

/** A utilisation in percent, unknown where it was not read. */
export function utilisation(percent: number | null): string {
  return percent === null ? "unknown" : wholePercent.format(percent / 100);
}

export function span(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours} h ${String(minutes % 60).padStart(2, "0")} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

let timeZone: string | undefined;

/** Show times in UTC, or else in the zone of the browser. */
export function showUtc(isUtc: boolean): void {
  timeZone = isUtc ? "UTC" : undefined;
}

export function clockTime(iso: string): string {
  return zoned(new Date(iso).toLocaleTimeString("en-GB", { hour12: false, timeZone }));
}

export function dateTime(iso: string): string {
  return zoned(new Date(iso).toLocaleString("en-GB", { hour12: false, timeZone }));
}

function zoned(text: string): string {
  return timeZone === undefined ? text : `${text} ${timeZone}`;
}

export function plural(n: number, singular: string, many = `${singular}s`): string {
  return `${count(n)} ${n === 1 ? singular : many}`;
}

/** A GPU product without the prefix that nearly all of them share. */
export function modelName(model: string): string {
  return model.replace(/^NVIDIA-/, "") || "Unknown model";
}

/** A number of GPUs with its unit: `1 GPU`, `0.5 GPUs`, `12 GPUs`. */
export function gpuCount(value: number): string {
  return `${gpus(value)} ${value === 1 ? "GPU" : "GPUs"}`;
}

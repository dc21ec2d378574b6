/** Amounts as people type them: `2.5`, `1,5`, `2500m`, `1Ti`, `64 GB`. A number without a unit is in GPUs, cores or gigabytes. */
import type { Resource } from "./rows.ts";
import { fromShown } from "./units.ts";

export type AmountProblem = "notANumber" | "negative" | "tooPrecise" | "ambiguous";

const PATTERN = /^(-?)(\d+(?:[.,]\d*)?|[.,]\d+)\s*([A-Za-z]*)$/;
const MAX_DECIMALS = 3;
/** Queues hold memory in whole megabytes, so bytes are rounded to them. */
const MEGABYTE = 1e6;

const BYTES: Readonly<Record<string, number>> = {
  k: 1e3,
  m: 1e6,
  g: 1e9,
  t: 1e12,
  p: 1e15,
  ki: 2 ** 10,
  mi: 2 ** 20,
  gi: 2 ** 30,
  ti: 2 ** 40,
  pi: 2 ** 50,
};
const WORDS: Readonly<Record<Resource, readonly string[]>> = {
  gpu: ["gpu", "gpus"],
  cpuMilli: ["core", "cores", "cpu", "cpus"],
  memoryBytes: [],
};

/** Return the amount in base units (GPUs, millicores, bytes), or why the text cannot be read. */
export function readAmountText(resource: Resource, text: string): number | AmountProblem {
  const match = PATTERN.exec(text.trim());
  if (match === null) return "notANumber";
  const [, sign, digits = "", unit = ""] = match;
  // 1,500 is one and a half to some readers and fifteen hundred to others.
  if (/^\d{1,3},\d{3}$/.test(digits)) return "ambiguous";
  if (sign === "-") return "negative";
  const number = Number(digits.replace(",", "."));
  const decimals = digits.split(/[.,]/)[1]?.length ?? 0;
  if (unit === "" || WORDS[resource].includes(unit.toLowerCase())) {
    return decimals > MAX_DECIMALS ? "tooPrecise" : fromShown(resource, number);
  }
  if (resource === "memoryBytes") return readBytes(number, unit);
  if (unit !== "m") return "notANumber";
  if (!Number.isInteger(number)) return "tooPrecise";
  return fromShown(resource, number / 1_000);
}

/** Return whether a text is not a plain decimal number, so that the field must show which amount it stands for. */
export function needsExplanation(text: string): boolean {
  const trimmed = text.trim();
  return trimmed !== "" && !/^\d*\.?\d+$/.test(trimmed);
}

function readBytes(number: number, unit: string): number | AmountProblem {
  // A small m would be thousandths of a byte, as in Kubernetes: nobody asks for that, so it is refused.
  if (unit === "m") return "notANumber";
  const factor = BYTES[unit.toLowerCase().replace(/b$/, "")];
  if (factor === undefined) return "notANumber";
  return Math.round((number * factor) / MEGABYTE) * MEGABYTE;
}

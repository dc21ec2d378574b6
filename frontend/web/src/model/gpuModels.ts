/** Bounds per GPU model as one text: `A100=4/8, H100=2/-` is quota and limit of each; `-` is no bound. */
import type { Bound, Bounds, GpuModels } from "./rows.ts";

const NONE = "-";

/** Return the bounds of all models, sorted, so that equal bounds are equal texts. */
export function modelsText(models: GpuModels): string {
  return Object.entries(models)
    .map(([model, { quota, limit }]) => `${model}=${quota ?? NONE}/${limit ?? NONE}`)
    .sort()
    .join(", ");
}

/** Read `MODEL=QUOTA/LIMIT` between commas or spaces; null if there is anything else. */
export function readModels(text: string): GpuModels | null {
  const models: Record<string, Bounds> = {};
  for (const part of text.split(/[,\s]+/).filter(Boolean)) {
    const match = /^([^=]+)=([^/]+)\/([^/]+)$/.exec(part);
    if (match === null) return null;
    const [quota, limit] = [readBound(match[2]), readBound(match[3])];
    if (quota === null || limit === null) return null;
    models[String(match[1])] = {
      ...(quota === undefined ? {} : { quota }),
      ...(limit === undefined ? {} : { limit }),
    };
  }
  return models;
}

/** Return a bound, undefined for none, null if the text is neither. */
function readBound(text = ""): Bound | undefined | null {
  if (text === NONE) return undefined;
  if (text === "unlimited") return text;
  return /^\d*\.?\d+$/.test(text) ? Number(text) : null;
}

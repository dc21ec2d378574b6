/** Series of the history: one number for each step, null where nothing was observed. */
export type Series = readonly (number | null)[];

/** Turn bounds into a series; "unlimited" is no line of a chart. */
export function numbersOf(bounds: readonly (number | string | null)[] | undefined): Series {
  return (bounds ?? []).map((bound) => (typeof bound === "number" ? bound : null));
}

/** Return the largest value of several series, at least `least`. */
export function largest(all: readonly Series[], least: number): number {
  let max = least;
  for (const series of all) for (const value of series) max = Math.max(max, value ?? 0);
  return max;
}

/**
 * Return the path of a line through the known values. The line is interrupted at gaps; a value between two gaps
 * becomes a short dash, so that it is seen.
 */
export function linePath(
  values: Series,
  x: (index: number) => number,
  y: (value: number) => number,
): string {
  let path = "";
  for (const [index, value] of values.entries()) {
    if (value === null) continue;
    const isFirst = index === 0 || values[index - 1] === null;
    const isLast = index === values.length - 1 || values[index + 1] === null;
    path += `${isFirst ? "M" : "L"}${round(x(index))} ${round(y(value))}`;
    if (isFirst && isLast) path += "h1.5";
  }
  return path;
}

/** Return the path of an area between the line of `linePath` and the bottom. */
export function areaPath(
  values: Series,
  x: (index: number) => number,
  y: (value: number) => number,
): string {
  const bottom = round(y(0));
  return linePath(values, x, y)
    .split("M")
    .slice(1)
    .map((line) => {
      const first = line.split(" ")[0] ?? "0";
      const last = /(?:^|L)([\d.]+) [^L]*$/.exec(line)?.[1] ?? first;
      return `M${first} ${bottom}L${line}L${last} ${bottom}Z`;
    })
    .join("");
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

/** Return about `count` indexes spread over `length` steps, for the labels of the time axis. */
export function tickIndexes(length: number, count: number): readonly number[] {
  if (length === 0) return [];
  const step = Math.max(1, Math.ceil(length / Math.max(1, count)));
  return Array.from({ length: Math.ceil(length / step) }, (_, index) => index * step);
}

/** Return how much of a range was observed, from 0 to 1. */
export function coverage(coveredSeconds: number, from: string, to: string): number {
  const seconds = (Date.parse(to) - Date.parse(from)) / 1_000;
  return seconds <= 0 ? 1 : Math.min(1, coveredSeconds / seconds);
}

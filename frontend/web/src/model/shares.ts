/** The waterfall of a fair share: each step from where the one before ended. */
import type { ShareStep } from "./rows.ts";

type Fall = ShareStep & { readonly from: number; readonly to: number };

/** Return the steps with their ends, and how far they reach at most. */
export function waterfall(steps: readonly ShareStep[]): { falls: Fall[]; reach: number } {
  let at = 0;
  const falls = steps.map((step) => {
    const from = at;
    at += step.amount;
    return { ...step, from, to: at };
  });
  return { falls, reach: Math.max(0, ...falls.map(({ from, to }) => Math.max(from, to))) };
}

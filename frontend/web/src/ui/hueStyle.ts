import type { CSSProperties } from "react";
import { type Hue, NO_HUE } from "../model/hues.ts";

const PATTERNS = [
  "none",
  "repeating-linear-gradient(45deg, var(--stripe) 0 2px, transparent 2px 5px)",
  "radial-gradient(var(--stripe) 1.2px, transparent 1.6px) 0 0 / 5px 5px",
  "repeating-linear-gradient(0deg, var(--stripe) 0 1.5px, transparent 1.5px 4px)",
];

export function hueColor({ hue }: Hue): string {
  return hue < 0 ? "var(--line-strong)" : `var(--hue-${hue})`;
}

/** Return the background that marks a queue: its hue, and a pattern if the hue is shared. */
export function hueStyle(hue: Hue = NO_HUE): CSSProperties {
  const pattern = PATTERNS[hue.pattern] ?? "none";
  return { background: pattern === "none" ? hueColor(hue) : `${pattern}, ${hueColor(hue)}` };
}

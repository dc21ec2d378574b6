import type { Hue } from "../model/hues.ts";
import { hueStyle } from "./hueStyle.ts";
import styles from "./QueueMark.module.css";

/** A small square with a queue's hue and pattern, shown before its name. */
export function QueueMark({ hue }: { hue: Hue | undefined }) {
  return <span className={styles.mark} style={hueStyle(hue)} aria-hidden />;
}

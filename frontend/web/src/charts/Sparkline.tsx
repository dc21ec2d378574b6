import { SERIES_CHART } from "../i18n/usage.ts";
import { areaPath, largest, linePath, type Series } from "../model/series.ts";
import styles from "./SeriesChart.module.css";

const WIDTH = 80;
const HEIGHT = 22;

/** The shape of a series without axes, for a cell of a table. */
export function Sparkline({ name, values }: { name: string; values: Series }) {
  const top = largest([values], 1);
  const x = (index: number) => (index * WIDTH) / Math.max(1, values.length - 1);
  const y = (value: number) => HEIGHT - 2 - (value / top) * (HEIGHT - 4);
  return (
    <svg
      className={styles.spark}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={SERIES_CHART.trend(name, values.findLast((value) => value !== null) ?? null)}
    >
      <path className={styles.area} d={areaPath(values, x, y)} fill="var(--accent)" />
      <path
        className={styles.line}
        d={linePath(values, x, y)}
        stroke="var(--accent)"
        vectorEffect="non-scaling-stroke"
        style={{ strokeWidth: 1.5 }}
      />
    </svg>
  );
}

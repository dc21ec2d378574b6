import { areaPath, linePath } from "../model/series.ts";
import styles from "./SeriesChart.module.css";
import { type ChartMark, type NamedSeries, SeriesChart } from "./SeriesChart.tsx";

type Props = {
  summary: string;
  file: string;
  times: readonly string[];
  stepSeconds: number;
  series: readonly NamedSeries[];
  marks?: readonly ChartMark[];
};

/** Lines over time with gaps where nothing was observed; the first is filled, bounds are dashed. */
export function LineChart(props: Props) {
  return (
    <SeriesChart
      {...props}
      draw={({ x, y }) =>
        props.series.map(({ name, values, color, isDashed }, number) => (
          <g key={name}>
            {number === 0 && (
              <path className={styles.area} d={areaPath(values, x, y)} fill={color} />
            )}
            <path
              className={isDashed ? styles.bound : styles.line}
              d={linePath(values, x, y)}
              stroke={color}
            />
          </g>
        ))
      }
    />
  );
}

import { type NamedSeries, type Scales, SeriesChart } from "./SeriesChart.tsx";

const WIDEST = 46;

type Props = {
  summary: string;
  file: string;
  times: readonly string[];
  stepSeconds: number;
  /** From the bottom up. */
  series: readonly NamedSeries[];
};

/** One bar for each step, stacked; a step that was not observed has none. */
export function StackedBars(props: Props) {
  const totals = props.times.map((_, index) =>
    props.series.reduce((sum, { values }) => sum + (values[index] ?? 0), 0),
  );
  return (
    <SeriesChart
      {...props}
      top={Math.max(1e-3, ...totals)}
      draw={(scales) =>
        props.times.map((time, index) => (
          <Bar key={time} index={index} series={props.series} scales={scales} />
        ))
      }
    />
  );
}

type BarProps = { index: number; series: readonly NamedSeries[]; scales: Scales };

function Bar({ index, series, scales: { x, y, step } }: BarProps) {
  const width = Math.max(1, Math.min(WIDEST, step * 0.78));
  let low = 0;
  return (
    <g>
      {series.map(({ name, values, color }) => {
        const from = low;
        low += values[index] ?? 0;
        return (
          <rect
            key={name}
            x={x(index) - width / 2}
            width={width}
            y={y(low)}
            height={Math.max(0, y(from) - y(low))}
            fill={color}
          />
        );
      })}
    </g>
  );
}

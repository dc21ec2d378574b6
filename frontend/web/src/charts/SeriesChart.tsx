import { useElementSize } from "@mantine/hooks";
import { scaleLinear } from "d3-scale";
import { type ReactNode, useState } from "react";
import { SERIES_CHART, stepLabel } from "../i18n/usage.ts";
import { largest, type Series, tickIndexes } from "../model/series.ts";
import { Chart } from "./Chart.tsx";
import styles from "./SeriesChart.module.css";

const HEIGHT = 210;
const LEFT = 44;
const FOOT = 22;
const TOP = 8;
const LABEL_WIDTH = 110;
const LONG_S = 26 * 3_600;

export type NamedSeries = {
  readonly name: string;
  readonly values: Series;
  readonly color: string;
  readonly isDashed?: boolean;
};

/** A point in time worth a look: a line with a sign of its own at the top, and what happened in its title. */
export type ChartMark = {
  readonly key: string;
  readonly index: number;
  readonly text: string;
  readonly shape: "diamond" | "triangle";
};

export type Scales = {
  readonly x: (index: number) => number;
  readonly y: (value: number) => number;
  readonly step: number;
};

type Props = {
  summary: string;
  file: string;
  times: readonly string[];
  stepSeconds: number;
  series: readonly NamedSeries[];
  /** The least height of the axis, so that an idle queue is not drawn as a mountain range. */
  least?: number;
  marks?: readonly ChartMark[];
  /** The largest value, where it is not that of a series (stacks). */
  top?: number;
  draw: (scales: Scales) => ReactNode;
};

/** The axes, legend and table of a chart over time; `draw` adds the marks. */
export function SeriesChart(props: Props) {
  const { summary, file, times, stepSeconds, series, marks = [], least = 1, draw } = props;
  const { ref, width } = useElementSize<HTMLDivElement>();
  const [active, setActive] = useState<number | null>(null);
  const all = series.map(({ values }) => values);
  const y = scaleLinear([0, props.top ?? largest(all, least)], [HEIGHT - FOOT, TOP]).nice(4);
  const step = Math.max(0, width - LEFT) / Math.max(1, times.length);
  const x = (index: number) => LEFT + (index + 0.5) * step;
  const isLong = times.length * stepSeconds > LONG_S;
  const label = (index: number) => stepLabel(times[index] ?? "", stepSeconds, isLong);
  const indexAt = (left: number) =>
    Math.max(0, Math.min(times.length - 1, Math.floor((left - LEFT) / step)));
  return (
    <Chart
      summary={summary}
      columns={[SERIES_CHART.time, ...series.map(({ name }) => name)]}
      rows={times.map((time, index) => [
        time.slice(0, 16).replace("T", " "),
        ...all.map((values) => values[index] ?? null),
      ])}
      file={file}
    >
      <Legend series={series} active={active} label={active === null ? "" : label(active)} />
      <div ref={ref}>
        <svg
          height={HEIGHT}
          width="100%"
          role="img"
          aria-label={summary}
          onPointerMove={(event) =>
            setActive(indexAt(event.clientX - event.currentTarget.getBoundingClientRect().left))
          }
          onPointerLeave={() => setActive(null)}
        >
          {y.ticks(4).map((tick) => (
            <g key={tick}>
              <line className={styles.grid} x1={LEFT} x2={width} y1={y(tick)} y2={y(tick)} />
              <text className={styles.axis} x={LEFT - 7} y={y(tick) + 4} textAnchor="end">
                {SERIES_CHART.value(tick)}
              </text>
            </g>
          ))}
          {tickIndexes(times.length, (width - LEFT) / LABEL_WIDTH).map((index) => (
            <text
              key={index}
              className={styles.axis}
              x={Math.max(LEFT, Math.min(x(index), width - 30))}
              y={HEIGHT - 4}
              textAnchor={index === 0 ? "start" : "middle"}
            >
              {label(index)}
            </text>
          ))}
          {width > 0 && draw({ x, y, step })}
          {width > 0 &&
            marks.map((mark) => <MarkLine key={mark.key} mark={mark} x={x(mark.index)} />)}
          {active !== null && (
            <line
              className={styles.cursor}
              x1={x(active)}
              x2={x(active)}
              y1={TOP}
              y2={HEIGHT - FOOT}
            />
          )}
        </svg>
      </div>
    </Chart>
  );
}

const SHAPES = { diamond: "M0 -5L5 0L0 5L-5 0Z", triangle: "M-5 -4H5L0 5Z" } as const;

function MarkLine({ mark, x }: { mark: ChartMark; x: number }) {
  return (
    <g className={styles[mark.shape]} transform={`translate(${Math.round(x)} 0)`}>
      <title>{mark.text}</title>
      <line y1={TOP + 5} y2={HEIGHT - FOOT} />
      <path d={SHAPES[mark.shape]} transform={`translate(0 ${TOP})`} />
    </g>
  );
}

type LegendProps = { series: readonly NamedSeries[]; active: number | null; label: string };

/** The names of the series; under the pointer also their values. */
function Legend({ series, active, label }: LegendProps) {
  return (
    <div className={styles.legend}>
      {series.map(({ name, color, isDashed, values }) => (
        <span key={name}>
          <span
            className={isDashed ? styles.dash : styles.swatch}
            style={isDashed ? { borderColor: color } : { background: color }}
            aria-hidden
          />
          {name}
          {active !== null && <b>{valueText(values[active])}</b>}
        </span>
      ))}
      {active !== null && <span className={styles.when}>{label}</span>}
    </div>
  );
}

function valueText(value: number | null | undefined): string {
  return value === null || value === undefined ? SERIES_CHART.unknown : SERIES_CHART.value(value);
}

import { useElementSize } from "@mantine/hooks";
import { scaleLinear } from "d3-scale";
import { clockTime, milliseconds } from "../i18n/numbers.ts";
import { SESSION_CHART } from "../i18n/ui.ts";
import type { Session } from "../model/rows.ts";
import styles from "./Chart.module.css";
import { Chart } from "./Chart.tsx";

const HEIGHT = 130;
const LEFT = 46;
const FOOT = 18;
const WIDEST = 14;
/** The time outside the actions: reading the cluster and writing decisions. */
const REST = "rest";
const HUE_OF_ACTION: Readonly<Record<string, string>> = {
  allocate: "var(--hue-0)",
  consolidation: "var(--hue-2)",
  reclaim: "var(--hue-6)",
  preempt: "var(--hue-3)",
  stalegangeviction: "var(--hue-7)",
};

/** The duration of the latest scheduling sessions, stacked by action, oldest on the left. */
export function SessionBars({ sessions }: { sessions: readonly Session[] }) {
  const { ref, width } = useElementSize<HTMLDivElement>();
  const top = Math.max(1, ...sessions.map((session) => session.durationMs));
  const y = scaleLinear([0, top], [HEIGHT - FOOT, 6]).nice(3);
  const step = Math.min(WIDEST, (width - LEFT) / Math.max(sessions.length, 1));
  // The newest is at the right edge, so a short history leaves room on the left.
  const start = width - sessions.length * step;
  const first = sessions[0];
  const last = sessions.at(-1);
  const rows = sessions.map((session) => [
    session.id,
    clockTime(session.startedAt),
    Number(session.durationMs.toFixed(2)),
    session.bound,
    session.evicted,
  ]);
  const slowest = milliseconds(top);
  return (
    <Chart
      summary={SESSION_CHART.summary(sessions.length, slowest)}
      columns={SESSION_CHART.columns}
      rows={rows}
      file="sessions.csv"
    >
      <div ref={ref}>
        <svg height={HEIGHT} width="100%" role="img" aria-label={SESSION_CHART.slowest(slowest)}>
          {y.ticks(3).map((tick) => (
            <g key={tick}>
              <line className={styles.grid} x1={LEFT} x2={width} y1={y(tick)} y2={y(tick)} />
              <text className={styles.axis} x={LEFT - 6} y={y(tick) + 4} textAnchor="end">
                {tick === 0 ? "0" : milliseconds(tick)}
              </text>
            </g>
          ))}
          {sessions.map((session, index) => (
            <SessionBar
              key={session.id}
              session={session}
              x={start + index * step}
              width={step}
              y={y}
            />
          ))}
          {first !== undefined && last !== undefined && (
            <>
              <text className={styles.axis} x={Math.min(start, width - 140)} y={HEIGHT - 3}>
                {clockTime(first.startedAt)}
              </text>
              <text className={styles.axis} x={width} y={HEIGHT - 3} textAnchor="end">
                {clockTime(last.startedAt)}
              </text>
            </>
          )}
        </svg>
      </div>
    </Chart>
  );
}

type BarProps = { session: Session; x: number; width: number; y: (ms: number) => number };

function SessionBar({ session, x, width, y }: BarProps) {
  const gap = Math.min(1.5, width * 0.25);
  const inActions = session.actions.reduce((sum, action) => sum + action.ms, 0);
  const rest = Math.max(0, session.durationMs - inActions);
  let from = 0;
  const parts = [...session.actions, { name: REST, ms: rest }].map(({ name, ms }) => {
    const part = { name, low: from, high: from + ms };
    from += ms;
    return part;
  });
  return (
    <g>
      <title>
        {SESSION_CHART.session(session.id, milliseconds(session.durationMs), session.bound)}
      </title>
      {parts.map(({ name, low, high }) => (
        <rect
          key={name}
          x={x}
          width={Math.max(0.5, width - gap)}
          y={y(high)}
          height={Math.max(0, y(low) - y(high))}
          fill={HUE_OF_ACTION[name] ?? "var(--line-strong)"}
        />
      ))}
    </g>
  );
}

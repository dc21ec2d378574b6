import type { ReactNode } from "react";
import { Link } from "react-router";
import styles from "./Chart.module.css";
import { Chart } from "./Chart.tsx";

export type Bar = {
  readonly key: string;
  readonly label: ReactNode;
  readonly value: number;
  readonly shown: ReactNode;
  readonly to?: string;
  readonly color?: string;
};

type Props = {
  summary: string;
  columns: readonly [string, string];
  file: string;
  bars: readonly Bar[];
};

/** Bars with their numbers beside them; a label may link to the page with what it counts. */
export function BarList({ summary, columns, file, bars }: Props) {
  const max = Math.max(...bars.map((bar) => bar.value), 1e-9);
  return (
    <Chart
      summary={summary}
      columns={columns}
      rows={bars.map(({ key, value }) => [key, value])}
      file={file}
    >
      <ul className={styles.bars}>
        {bars.map(({ key, label, value, shown, to, color }) => (
          <li key={key}>
            {to === undefined ? (
              <span className={styles.label} title={plainText(label)}>
                {label}
              </span>
            ) : (
              <Link className={styles.label} title={plainText(label)} to={to}>
                {label}
              </Link>
            )}
            <span className={styles.rail} aria-hidden>
              <span
                className={styles.fill}
                style={{
                  display: "block",
                  width: `${(100 * value) / max}%`,
                  ...(color ? { background: color } : {}),
                }}
              />
            </span>
            <span className={styles.value}>{shown}</span>
          </li>
        ))}
      </ul>
    </Chart>
  );
}

/** Return a label's text for its tooltip, because a long label is cut off. */
function plainText(label: ReactNode): string | undefined {
  return typeof label === "string" ? label : undefined;
}

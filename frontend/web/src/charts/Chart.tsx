import { type ReactNode, useState } from "react";
import { CHART, NONE } from "../i18n/ui.ts";
import { DataTable } from "../ui/DataTable.tsx";
import styles from "./Chart.module.css";

export type Cell = string | number | null;

type Props = {
  /** What the chart shows, in one sentence: the accessible name of the figure. */
  summary: string;
  columns: readonly string[];
  rows: readonly (readonly Cell[])[];
  /** The name of the CSV file. */
  file: string;
  children: ReactNode;
};

/** A chart whose numbers can be shown as a table and downloaded as a CSV file. */
export function Chart({ summary, columns, rows, file, children }: Props) {
  const [isTable, setIsTable] = useState(false);
  return (
    <figure className={styles.figure} aria-label={summary}>
      {isTable ? <ChartTable summary={summary} columns={columns} rows={rows} /> : children}
      <div className={styles.tools}>
        <button type="button" className={styles.tool} onClick={() => setIsTable(!isTable)}>
          {isTable ? CHART.asChart : CHART.asTable}
        </button>
        <button
          type="button"
          className={styles.tool}
          onClick={() => download(file, toCsv(columns, rows))}
        >
          {CHART.csv}
        </button>
      </div>
    </figure>
  );
}

function ChartTable({ summary, columns, rows }: Pick<Props, "summary" | "columns" | "rows">) {
  const numberColumns = columns.flatMap((_, index) =>
    rows.some((row) => typeof row[index] === "number") ? [index] : [],
  );
  return (
    <DataTable name={summary} columns={columns} numberColumns={numberColumns} isShort>
      {rows.map((row) => (
        <tr key={row.join("\t")}>
          {row.map((cell, index) => (
            <td key={columns[index]}>{cell ?? NONE}</td>
          ))}
        </tr>
      ))}
    </DataTable>
  );
}

/** Write CSV as in RFC 4180. A text that a spreadsheet would run as a formula gets a quote before it. */
export function toCsv(columns: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const quote = (cell: Cell): string => {
    if (cell === null) return "";
    if (typeof cell === "number") return String(cell);
    const safe = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return [columns, ...rows].map((row) => row.map(quote).join(",")).join("\r\n");
}

function download(file: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = file;
  link.click();
  URL.revokeObjectURL(url);
}

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
  file: string;
  children: ReactNode;
};

/** A chart whose numbers can be shown as a table and downloaded as a CSV file. */
export function Chart({ summary, columns, rows, file, children }: Props) {
  const [asTable, setAsTable] = useState(false);
  return (
    <figure className={styles.figure} aria-label={summary}>
      {asTable ? <ChartTable summary={summary} columns={columns} rows={rows} /> : children}
      <div className={styles.tools}>
        <button type="button" className={styles.tool} onClick={() => setAsTable(!asTable)}>
          {asTable ? CHART.asChart : CHART.asTable}
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
  const numbers = columns.flatMap((_, place) =>
    rows.some((row) => typeof row[place] === "number") ? [place] : [],
  );
  return (
    <DataTable name={summary} columns={columns} numbers={numbers} isShort>
      {rows.map((row) => (
        <tr key={row.join("\t")}>
          {row.map((cell, place) => (
            <td key={columns[place]}>{cell ?? NONE}</td>
          ))}
        </tr>
      ))}
    </DataTable>
  );
}

/** Write RFC 4180. A leading quote keeps spreadsheets from running a name as a formula. */
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

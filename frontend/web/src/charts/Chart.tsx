import { type ReactNode, useState } from "react";
import styles from "./Chart.module.css";

export type Cell = string | number | null;

type Props = {
  /** What the chart says, in a sentence; it is the name of the figure. */
  summary: string;
  columns: readonly string[];
  rows: readonly (readonly Cell[])[];
  file: string;
  children: ReactNode;
};

/** Every chart has its numbers: as a table in place, and as a CSV file. */
export function Chart({ summary, columns, rows, file, children }: Props) {
  const [asTable, setAsTable] = useState(false);
  return (
    <figure className={styles.figure} aria-label={summary}>
      {asTable ? <DataTable columns={columns} rows={rows} name={summary} /> : children}
      <div className={styles.tools}>
        <button type="button" className={styles.tool} onClick={() => setAsTable(!asTable)}>
          {asTable ? "Show as chart" : "Show as table"}
        </button>
        <button
          type="button"
          className={styles.tool}
          onClick={() => download(file, toCsv(columns, rows))}
        >
          CSV
        </button>
      </div>
    </figure>
  );
}

function DataTable({
  columns,
  rows,
  name,
}: {
  columns: readonly string[];
  rows: Props["rows"];
  name: string;
}) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region must be reachable by keyboard
    <section className={styles.scroll} tabIndex={0} aria-label={name}>
      <table className={styles.table}>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column} scope="col">
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.join("\t")}>
              {row.map((cell, index) => (
                <td key={columns[index]}>{cell ?? "–"}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** RFC 4180; a leading quote sign keeps spreadsheets from running names as formulas. */
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

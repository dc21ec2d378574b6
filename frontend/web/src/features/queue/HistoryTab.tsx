import { type RangeName, useQueueHistory } from "../../api/usage.ts";
import { LineChart } from "../../charts/LineChart.tsx";
import type { NamedSeries } from "../../charts/SeriesChart.tsx";
import { count } from "../../i18n/numbers.ts";
import { HISTORY, SERIES_CHART } from "../../i18n/usage.ts";
import type { QueueHistory } from "../../model/rows.ts";
import { numbersOf } from "../../model/series.ts";
import { DataTable } from "../../ui/DataTable.tsx";
import { Panel } from "../../ui/Panel.tsx";
import { QueryResult } from "../../ui/QueryResult.tsx";
import { RangePicker, useRange } from "../../ui/RangePicker.tsx";
import { Empty } from "../../ui/States.tsx";

const OFFERED: readonly RangeName[] = ["1h", "24h", "7d", "30d", "90d", "1y"];
const DEFAULT: RangeName = "24h";

/** How a queue came to what it holds now: allocation against its bounds, waiting times, evictions. */
export function HistoryTab({ name }: { name: string }) {
  const [range, setRange] = useRange(DEFAULT);
  const history = useQueueHistory(name, range);
  return (
    <QueryResult query={history} rows={10}>
      {(data) => (
        <>
          <Panel
            title={HISTORY.allocation}
            note={HISTORY.allocationNote}
            tools={<RangePicker value={range} offered={OFFERED} onChange={setRange} />}
          >
            <Allocation history={data} />
          </Panel>
          <Panel title={HISTORY.days} note={HISTORY.daysNote} flush>
            <Days days={data.days} />
          </Panel>
        </>
      )}
    </QueryResult>
  );
}

function Allocation({ history }: { history: QueueHistory }) {
  const queue = history.series[0];
  const series: NamedSeries[] = [
    { name: HISTORY.allocated, values: queue?.allocated ?? [], color: "var(--hue-0)" },
    { name: HISTORY.waiting, values: queue?.waiting ?? [], color: "var(--hue-6)" },
    { name: HISTORY.share, values: queue?.share ?? [], color: "var(--hue-2)", isDashed: true },
    { name: HISTORY.quota, values: numbersOf(queue?.quota), color: "var(--hue-4)", isDashed: true },
    { name: HISTORY.limit, values: numbersOf(queue?.limit), color: "var(--bad)", isDashed: true },
  ];
  // An unlimited bound has no line, and no entry in the legend either.
  const drawn = series.filter(({ values }) => values.some((value) => value !== null));
  return (
    <LineChart
      summary={SERIES_CHART.summary(
        drawn.map(({ name }) => name),
        history.times.length,
      )}
      file={`${queue?.queue ?? "queue"}.csv`}
      times={history.times}
      stepSeconds={history.stepSeconds}
      series={drawn}
    />
  );
}

function Days({ days }: Pick<QueueHistory, "days">) {
  if (days.length === 0) return <Empty title={HISTORY.noDaysTitle}>{HISTORY.noDays}</Empty>;
  return (
    <DataTable name={HISTORY.dayTable} columns={HISTORY.dayColumns}>
      {days.toReversed().map((row) => (
        <tr key={row.day}>
          <td>{row.day}</td>
          <td>{count(row.starts)}</td>
          <td>{HISTORY.seconds(row.waitedP50Seconds)}</td>
          <td>{HISTORY.seconds(row.waitedP90Seconds)}</td>
          <td>{HISTORY.seconds(row.waitedMaxSeconds)}</td>
          <td>{count(row.evictions)}</td>
        </tr>
      ))}
    </DataTable>
  );
}

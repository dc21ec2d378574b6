import { type RangeName, useQueueHistory } from "../../api/usage.ts";
import { LineChart } from "../../charts/LineChart.tsx";
import type { ChartMark, NamedSeries } from "../../charts/SeriesChart.tsx";
import { AUDIT, pointerName, pointerValue } from "../../i18n/changes.ts";
import { count, dateTime } from "../../i18n/numbers.ts";
import { ruleName } from "../../i18n/scheduler.ts";
import { HISTORY, SERIES_CHART } from "../../i18n/usage.ts";
import { type Happening, type Mark, marksOf } from "../../model/marks.ts";
import type { AuditEntry, Eviction, QueueHistory } from "../../model/rows.ts";
import { numbersOf } from "../../model/series.ts";
import { DataTable } from "../../ui/DataTable.tsx";
import { Panel } from "../../ui/Panel.tsx";
import { QueryResult } from "../../ui/QueryResult.tsx";
import { RangePicker, useRange } from "../../ui/RangePicker.tsx";
import { Empty } from "../../ui/States.tsx";
import { WorkloadLink } from "../../ui/WorkloadLink.tsx";
import { useHappenings } from "./useHappenings.ts";

const OFFERED: readonly RangeName[] = ["1h", "24h", "7d", "30d", "90d", "1y"];
const DEFAULT: RangeName = "24h";
/** More are in the audit log and on the page of evictions. */
const LISTED = 20;

/** How a queue came to what it holds now: allocation against its bounds, waiting times, evictions. */
export function HistoryTab({ name }: { name: string }) {
  const [range, setRange] = useRange(DEFAULT);
  const history = useQueueHistory(name, range);
  const happenings = useHappenings(name, range);
  return (
    <QueryResult query={history} rows={10}>
      {(data) => (
        <>
          <Panel
            title={HISTORY.allocation}
            note={HISTORY.allocationNote}
            tools={<RangePicker value={range} offered={OFFERED} onChange={setRange} />}
          >
            <Allocation history={data} happenings={happenings.data ?? []} />
          </Panel>
          <Panel title={HISTORY.happenings} note={HISTORY.happeningsNote} flush>
            <QueryResult query={happenings} rows={3}>
              {(rows) => <Happenings happenings={rows} />}
            </QueryResult>
          </Panel>
          <Panel title={HISTORY.days} note={HISTORY.daysNote} flush>
            <Days days={data.days} />
          </Panel>
        </>
      )}
    </QueryResult>
  );
}

type AllocationProps = { history: QueueHistory; happenings: readonly Happening[] };

function Allocation({ history, happenings }: AllocationProps) {
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
      marks={marksOf(happenings, history.times, history.stepSeconds).map(chartMark)}
    />
  );
}

function chartMark({ kind, index, happenings }: Mark): ChartMark {
  const [newest] = happenings;
  return {
    key: `${kind} ${index}`,
    index,
    text: HISTORY.mark(HISTORY.marked[kind], happenings.length, dateTime(newest?.at ?? "")),
    shape: kind === "edit" ? "diamond" : "triangle",
  };
}

function Happenings({ happenings }: { happenings: readonly Happening[] }) {
  if (happenings.length === 0) return <Empty title={HISTORY.quietTitle}>{HISTORY.quiet}</Empty>;
  return (
    <DataTable name={HISTORY.happenings} columns={HISTORY.happeningColumns}>
      {happenings.slice(0, LISTED).map((happening) => (
        <tr key={`${happening.kind} ${happening.at} ${keyOf(happening)}`}>
          <td>
            <time dateTime={happening.at}>{dateTime(happening.at)}</time>
          </td>
          {happening.kind === "edit" ? (
            <EditCells entry={happening.entry} />
          ) : (
            <EvictionCells eviction={happening.eviction} />
          )}
        </tr>
      ))}
    </DataTable>
  );
}

function keyOf(happening: Happening): number {
  return happening.kind === "edit" ? happening.entry.id : happening.eviction.id;
}

function EditCells({ entry }: { entry: AuditEntry }) {
  const changes = entry.diff.map(
    ({ pointer, before, after }) =>
      `${pointerName(pointer)} ${AUDIT.change(pointerValue(pointer, before), pointerValue(pointer, after))}`,
  );
  return (
    <>
      <td>{HISTORY.changed}</td>
      <td>{entry.actor}</td>
      <td>{[...changes, entry.reason].filter(Boolean).join(" · ")}</td>
    </>
  );
}

function EvictionCells({ eviction }: { eviction: Eviction }) {
  const { workload, rule, pods, gpu } = eviction;
  return (
    <>
      <td>{HISTORY.evicted}</td>
      <td>
        <WorkloadLink workload={workload} />
      </td>
      <td>{HISTORY.evictedBy(ruleName(rule), pods, gpu)}</td>
    </>
  );
}

function Days({ days }: Pick<QueueHistory, "days">) {
  if (days.length === 0) return <Empty title={HISTORY.noDaysTitle}>{HISTORY.noDays}</Empty>;
  return (
    <DataTable name={HISTORY.dayTable} columns={HISTORY.dayColumns} numberColumns={[1, 2, 3, 4, 5]}>
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

import { Button, SegmentedControl } from "@mantine/core";
import { IconDownload } from "@tabler/icons-react";
import { type RangeName, usageCsv, useUsage, useUsageHistory } from "../../api/usage.ts";
import { StackedBars } from "../../charts/StackedBars.tsx";
import { gpuHours, money, SERIES_CHART, USAGE } from "../../i18n/usage.ts";
import type { UsageBy, UsageHistory, UsageReport } from "../../model/rows.ts";
import { coverage } from "../../model/series.ts";
import { Page } from "../../ui/Page.tsx";
import { Panel } from "../../ui/Panel.tsx";
import { QueryFailure } from "../../ui/QueryFailure.tsx";
import { RangePicker, useRange } from "../../ui/RangePicker.tsx";
import { Empty, Loading } from "../../ui/States.tsx";
import { useChoice } from "../../ui/useChoice.ts";
import { useSearch } from "../../ui/useSearch.ts";
import { Comparison } from "./Comparison.tsx";
import styles from "./Usage.module.css";
import { UsageTable } from "./UsageTable.tsx";

const OFFERED: readonly RangeName[] = ["24h", "7d", "30d", "90d", "1y"];
const DEFAULT: RangeName = "7d";
const BY_KEYS = Object.keys(USAGE.bys) as UsageBy[];
const BYS = BY_KEYS.map((value) => ({ value, label: USAGE.bys[value] }));

/** Who used how many GPU-hours, what was idle, and what it cost. */
export function UsagePage() {
  const [search, changeSearch] = useSearch();
  const [range, setRange] = useRange(DEFAULT);
  const [by, setBy] = useChoice("by", BY_KEYS, "queue");
  const report = useUsage(by, range);
  const history = useUsageHistory(range);
  return (
    <Page
      title={USAGE.title}
      note={USAGE.note}
      tools={<RangePicker value={range} offered={OFFERED} onChange={setRange} />}
    >
      {report.data !== undefined && <Tiles report={report.data} />}
      <Panel title={range === "24h" ? USAGE.perStep : USAGE.perDay} note={USAGE.perDayNote}>
        {history.error !== null ? (
          <QueryFailure error={history.error} onRetry={() => void history.refetch()} />
        ) : history.data === undefined ? (
          <Loading rows={6} />
        ) : (
          <Bars history={history.data} />
        )}
      </Panel>
      <Panel
        title={USAGE.who}
        note={report.data === undefined ? undefined : observed(report.data)}
        flush
        tools={
          <div className={styles.tools}>
            <SegmentedControl
              size="xs"
              aria-label={USAGE.by}
              data={BYS}
              value={by}
              onChange={setBy}
            />
            <Button
              component="a"
              href={usageCsv(by, range)}
              size="compact-sm"
              variant="default"
              leftSection={<IconDownload size={14} />}
            >
              {USAGE.csv}
            </Button>
          </div>
        }
      >
        {report.error !== null ? (
          <QueryFailure error={report.error} onRetry={() => void report.refetch()} />
        ) : report.data === undefined ? (
          <Loading rows={6} />
        ) : report.data.items.length === 0 ? (
          <Empty title={USAGE.emptyTitle}>{USAGE.empty}</Empty>
        ) : (
          <UsageTable report={report.data} />
        )}
      </Panel>
      <Comparison range={range} search={search} onChange={changeSearch} />
    </Page>
  );
}

function Tiles({ report }: { report: UsageReport }) {
  const { total, cluster, currency, utilisation } = report;
  const part = cluster.capacityHours > 0 ? cluster.idleHours / cluster.capacityHours : 0;
  const tiles: [string, string, string][] = [
    [USAGE.held, gpuHours(total.gpuHours), USAGE.hours],
    [USAGE.inQuota, gpuHours(total.inQuotaHours), USAGE.hours],
    [USAGE.overQuota, gpuHours(total.overQuotaHours), USAGE.hours],
    [USAGE.idle, gpuHours(cluster.idleHours), USAGE.ofCapacity(part)],
  ];
  const notUsed = total.allocatedButIdleHours;
  const known = total.gpuHours - total.utilisationUnknownHours;
  if (notUsed !== null) {
    tiles.push([USAGE.notUsed, gpuHours(notUsed), USAGE.ofHeld(known > 0 ? notUsed / known : 0)]);
  }
  if (currency !== null) tiles.push([USAGE.cost, money(total.cost, currency), USAGE.byPrices]);
  return (
    <>
      <div className={styles.tiles}>
        {tiles.map(([name, value, note]) => (
          <div key={name} className={styles.tile}>
            <span>{name}</span>
            <b>{value}</b>
            <span>{note}</span>
          </div>
        ))}
      </div>
      <p className={styles.hint}>
        {notUsed === null
          ? USAGE.notUsedUnknown(utilisation.configured, utilisation.error)
          : USAGE.notUsedNote(
              gpuHours(total.utilisationUnknownHours),
              utilisation.idleBelowPercent,
            )}
      </p>
    </>
  );
}

function Bars({ history }: { history: UsageHistory }) {
  const series = [
    { name: USAGE.inQuota, values: history.inQuotaHours, color: "var(--bar-inside)" },
    { name: USAGE.overQuota, values: history.overQuotaHours, color: "var(--bar-over)" },
    { name: USAGE.idle, values: history.idleHours, color: "var(--track-strong)" },
  ];
  return (
    <StackedBars
      summary={SERIES_CHART.summary(
        series.map(({ name }) => name),
        history.times.length,
      )}
      file="usage.csv"
      times={history.times}
      stepSeconds={history.stepSeconds}
      series={series}
    />
  );
}

function observed({ coveredSeconds, from, to }: UsageReport): string {
  return USAGE.observed(coverage(coveredSeconds, from, to));
}

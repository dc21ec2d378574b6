import { Button } from "@mantine/core";
import { useMemo, useState } from "react";
import { useNavigate } from "react-router";
import { listSessions } from "../../api/scheduling.ts";
import { SessionBars } from "../../charts/SessionBars.tsx";
import { clockTime, count, milliseconds } from "../../i18n/numbers.ts";
import { SCHEDULER, SESSION_COLUMNS } from "../../i18n/scheduler.ts";
import { OLDER } from "../../i18n/ui.ts";
import { useTopic } from "../../live/react.tsx";
import type { Session } from "../../model/rows.ts";
import type { Column } from "../../ui/columns.ts";
import { OlderButton } from "../../ui/OlderButton.tsx";
import { Page } from "../../ui/Page.tsx";
import { Panel } from "../../ui/Panel.tsx";
import { usePreferences } from "../../ui/preferences.ts";
import { Badge } from "../../ui/StateBadge.tsx";
import { Empty, Failure, Loading } from "../../ui/States.tsx";
import { usePages } from "../../ui/usePages.ts";
import { useSearch } from "../../ui/useSearch.ts";
import { VirtualTable } from "../../ui/VirtualTable.tsx";
import { SchedulerTabs } from "./SchedulerTabs.tsx";

const COLUMNS: readonly Column<Session>[] = [
  {
    key: "id",
    label: SESSION_COLUMNS.id,
    width: "68px",
    sortBy: (row) => row.id,
    render: (row) => row.id,
  },
  {
    key: "time",
    label: SESSION_COLUMNS.time,
    width: "66px",
    render: (row) => clockTime(row.startedAt),
  },
  {
    key: "shard",
    label: SESSION_COLUMNS.shard,
    width: "minmax(64px, 0.5fr)",
    sortBy: (row) => row.shard,
    render: (row) => row.shard,
  },
  {
    key: "duration",
    label: SESSION_COLUMNS.duration,
    width: "70px",
    numeric: true,
    sortBy: (row) => row.durationMs,
    render: (row) => milliseconds(row.durationMs),
  },
  {
    key: "actions",
    label: SESSION_COLUMNS.actions,
    width: "minmax(200px, 2fr)",
    render: (row) =>
      row.error === "" ? (
        SCHEDULER.actions(row.actions)
      ) : (
        <span title={row.error}>
          <Badge tone="bad">{SCHEDULER.failed}</Badge> {row.error}
        </span>
      ),
  },
  number("nodes", SESSION_COLUMNS.nodes, "48px", (row) => row.nodes),
  number("pending", SESSION_COLUMNS.pending, "58px", (row) => row.pendingBefore),
  number("bound", SESSION_COLUMNS.bound, "50px", (row) => row.bound),
  number("nominated", SESSION_COLUMNS.nominated, "72px", (row) => row.nominated),
  number("evicted", SESSION_COLUMNS.evicted, "56px", (row) => row.evicted),
  number("notPlaced", SESSION_COLUMNS.notPlaced, "72px", (row) => row.unschedulable),
];

function number(
  key: string,
  label: string,
  width: string,
  of: (row: Session) => number,
): Column<Session> {
  return { key, label, width, numeric: true, sortBy: of, render: (row) => count(of(row)) };
}

function sessionKey(row: Session): string {
  return String(row.id);
}

/** The latest sessions, live, and older ones on request. */
export function SchedulerPage() {
  const { rows, loaded, problem } = useTopic("sessions");
  const navigate = useNavigate();
  const [hasOlder, setHasOlder] = useState(false);
  const older = usePages(["sessions"], listSessions, false, hasOlder);
  const [search, changeSearch] = useSearch();
  const isCompact = usePreferences((state) => state.density) === "compact";
  const latest = useMemo(() => [...rows.values()].sort((a, b) => a.id - b.id), [rows]);
  const sessions = useMemo(
    () => [
      ...new Map([...(older.data ?? []), ...latest].map((row) => [row.id, row] as const)).values(),
    ],
    [older.data, latest],
  );
  if (problem !== null) return <Failure title={problem.title} detail={problem.detail} />;
  if (!loaded) {
    return (
      <Page title={SCHEDULER.title}>
        <Loading rows={12} />
      </Page>
    );
  }
  return (
    <Page title={SCHEDULER.title} note={SCHEDULER.note}>
      <SchedulerTabs active="sessions" />
      {sessions.length > 0 && (
        <Panel title={SCHEDULER.chartTitle} note={SCHEDULER.chartNote}>
          <SessionBars sessions={latest.slice(-120)} />
        </Panel>
      )}
      <VirtualTable
        name={SCHEDULER.table}
        rows={sessions}
        rowKey={sessionKey}
        columns={COLUMNS}
        rowHeight={isCompact ? 30 : 38}
        minWidth={1030}
        sort={search.get("sort") ?? "-id"}
        onSort={(sort) => changeSearch({ sort: sort === "-id" ? null : sort })}
        tools={<span style={{ color: "var(--dim)" }}>{SCHEDULER.last(sessions.length)}</span>}
        onOpen={(row) => void navigate(`/scheduler/sessions/${row.id}`)}
        foot={
          !hasOlder ? (
            <Button size="compact-sm" variant="default" onClick={() => setHasOlder(true)}>
              {OLDER}
            </Button>
          ) : (
            older.hasMore && <OlderButton pages={older} />
          )
        }
        empty={<Empty title={SCHEDULER.emptyTitle}>{SCHEDULER.empty}</Empty>}
      />
    </Page>
  );
}

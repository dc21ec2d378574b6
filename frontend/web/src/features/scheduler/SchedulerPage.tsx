import { useMemo } from "react";
import { SessionBars } from "../../charts/SessionBars.tsx";
import { useTopic } from "../../live/react.tsx";
import type { Session } from "../../model/rows.ts";
import { clockTime, count, milliseconds } from "../../model/units.ts";
import type { Column } from "../../ui/columns.ts";
import { Page } from "../../ui/Page.tsx";
import { Panel } from "../../ui/Panel.tsx";
import { usePreferences } from "../../ui/preferences.ts";
import { Badge } from "../../ui/StateBadge.tsx";
import { Empty, Failure, Loading } from "../../ui/States.tsx";
import { useSearch } from "../../ui/useSearch.ts";
import { VirtualTable } from "../../ui/VirtualTable.tsx";

const COLUMNS: readonly Column<Session>[] = [
  { key: "id", label: "Session", width: "68px", sortBy: (row) => row.id, render: (row) => row.id },
  { key: "time", label: "Started", width: "66px", render: (row) => clockTime(row.startedAt) },
  {
    key: "shard",
    label: "Shard",
    width: "minmax(64px, 0.5fr)",
    sortBy: (row) => row.shard,
    render: (row) => row.shard,
  },
  {
    key: "duration",
    label: "Duration",
    width: "70px",
    numeric: true,
    sortBy: (row) => row.durationMs,
    render: (row) => milliseconds(row.durationMs),
  },
  {
    key: "actions",
    label: "What it did",
    width: "minmax(200px, 2fr)",
    render: (row) =>
      row.error === "" ? (
        row.actions.map(({ name, ms }) => `${name} ${milliseconds(ms)}`).join(" · ")
      ) : (
        <span title={row.error}>
          <Badge tone="bad">failed</Badge> {row.error}
        </span>
      ),
  },
  number("nodes", "Nodes", (row) => row.nodes),
  number("pending", "Pending", (row) => row.pendingBefore),
  number("bound", "Bound", (row) => row.bound),
  number("nominated", "Nominated", (row) => row.nominated),
  number("evicted", "Evicted", (row) => row.evicted),
  number("refused", "Refused", (row) => row.unschedulable),
];

function number(key: string, label: string, of: (row: Session) => number): Column<Session> {
  return { key, label, width: "70px", numeric: true, sortBy: of, render: (row) => count(of(row)) };
}

function sessionKey(row: Session): string {
  return String(row.id);
}

export function SchedulerPage() {
  const { rows, version, loaded, problem } = useTopic("sessions");
  const [search, change] = useSearch();
  const isCompact = usePreferences((state) => state.density) === "compact";
  // biome-ignore lint/correctness/useExhaustiveDependencies: version says when the rows changed
  const sessions = useMemo(() => [...rows.values()].sort((a, b) => a.id - b.id), [rows, version]);
  if (problem !== null) return <Failure title={problem.title} detail={problem.detail} />;
  if (!loaded) {
    return (
      <Page title="Scheduler">
        <Loading rows={12} />
      </Page>
    );
  }
  return (
    <Page title="Scheduler" note="What it decided in its latest sessions, and how fast">
      {sessions.length > 0 && (
        <Panel
          title="Time per session"
          note="allocate, consolidate, reclaim, preempt, and the rest"
        >
          <SessionBars sessions={sessions.slice(-120)} />
        </Panel>
      )}
      <VirtualTable
        name="Sessions"
        rows={sessions}
        rowKey={sessionKey}
        columns={COLUMNS}
        rowHeight={isCompact ? 30 : 38}
        minWidth={1030}
        sort={search.get("sort") ?? "-id"}
        onSort={(sort) => change({ sort: sort === "-id" ? null : sort })}
        tools={
          <span style={{ color: "var(--dim)" }}>The last {count(sessions.length)} sessions</span>
        }
        empty={<Empty title="No session yet">A session starts as soon as work arrives.</Empty>}
      />
    </Page>
  );
}

import { Select } from "@mantine/core";
import { useMemo } from "react";
import { useNavigate } from "react-router";
import { gpus } from "../../i18n/numbers.ts";
import { reasonText } from "../../i18n/reasons.ts";
import { ORDER, SCHEDULER } from "../../i18n/scheduler.ts";
import { NONE } from "../../i18n/ui.ts";
import { kindIn, WHY, WORKLOADS } from "../../i18n/workloads.ts";
import { useTopic } from "../../live/react.tsx";
import { useQueueLabels } from "../../live/useQueueLabels.ts";
import { workloadKey } from "../../model/names.ts";
import { inOrder, type Placed } from "../../model/order.ts";
import { ancestors } from "../../model/tree.ts";
import type { Column } from "../../ui/columns.ts";
import { Elapsed } from "../../ui/Elapsed.tsx";
import { Page } from "../../ui/Page.tsx";
import { workloadPath } from "../../ui/paths.ts";
import { ROW_HEIGHT, usePreferences } from "../../ui/preferences.ts";
import { Empty, Failure, Loading } from "../../ui/States.tsx";
import { useSearch } from "../../ui/useSearch.ts";
import { VirtualTable } from "../../ui/VirtualTable.tsx";
import { SchedulerTabs } from "./SchedulerTabs.tsx";

/** Only these states can have a place; the server sends no other rows. */
const WAITING = "workloads?state=pending,gated,partial";

/** Whose turn it is: the waiting workloads in the scheduler's order, of all queues or of one with those below it. */
export function OrderPage() {
  const { rows, loaded, problem } = useTopic(WAITING);
  const { rows: queues } = useTopic("queues");
  const label = useQueueLabels();
  const navigate = useNavigate();
  const [search, changeSearch] = useSearch();
  const density = usePreferences((state) => state.density);
  const queue = search.get("queue");
  const all = useMemo(() => inOrder(rows.values()), [rows]);
  const shown = useMemo(
    () =>
      queue === null
        ? all
        : all.filter((row) => row.queue === queue || ancestors(queues, row.queue).includes(queue)),
    [all, queue, queues],
  );
  const columns = useMemo(() => columnsOf(label), [label]);
  if (problem !== null) return <Failure title={problem.title} detail={problem.detail} />;
  return (
    <Page title={SCHEDULER.title} note={ORDER.note}>
      <SchedulerTabs active="order" />
      {!loaded ? (
        <Loading rows={12} />
      ) : (
        <VirtualTable
          name={ORDER.table}
          rows={shown}
          rowKey={workloadKey}
          columns={columns}
          rowHeight={ROW_HEIGHT[density]}
          minWidth={900}
          sort={search.get("sort") ?? "position"}
          onSort={(sort) => changeSearch({ sort: sort === "position" ? null : sort })}
          onOpen={(row) => void navigate(workloadPath(row))}
          tools={
            <>
              <Select
                size="xs"
                w={220}
                aria-label={ORDER.queue}
                placeholder={ORDER.anyQueue}
                data={[...queues.keys()].sort().map((value) => ({ value, label: label(value) }))}
                value={queue}
                clearable
                searchable
                limit={100}
                clearButtonProps={{ "aria-label": WORKLOADS.clear(ORDER.queue) }}
                onChange={(value) => changeSearch({ queue: value })}
              />
              <span style={{ color: "var(--dim)" }}>{ORDER.count(shown.length, all.length)}</span>
            </>
          }
          empty={<Empty title={ORDER.emptyTitle}>{ORDER.empty}</Empty>}
        />
      )}
    </Page>
  );
}

function columnsOf(label: (queue: string) => string): readonly Column<Placed>[] {
  const names = ORDER.columns;
  return [
    {
      key: "position",
      label: names.position,
      width: "58px",
      numeric: true,
      sortBy: ({ position }) => position,
      render: ({ position }) => WHY.place(position),
    },
    {
      key: "inQueue",
      label: names.inQueue,
      width: "84px",
      numeric: true,
      sortBy: ({ inQueue }) => inQueue,
      render: ({ inQueue }) => WHY.place(inQueue),
    },
    {
      key: "workload",
      label: names.workload,
      width: "minmax(170px, 1.4fr)",
      sortBy: (row) => row.owner || row.name,
      render: (row) => (
        <span title={kindIn(row.kind, row.namespace)}>
          <b>{row.owner || row.name}</b>
        </span>
      ),
    },
    {
      key: "queue",
      label: names.queue,
      width: "minmax(110px, 0.8fr)",
      sortBy: (row) => label(row.queue),
      render: (row) => label(row.queue),
    },
    {
      key: "gpu",
      label: names.gpu,
      width: "60px",
      numeric: true,
      sortBy: ({ gpu }) => gpu,
      render: ({ gpu, gpuKind }) => (gpuKind === "none" ? NONE : gpus(gpu)),
    },
    {
      key: "priority",
      label: names.priority,
      width: "96px",
      sortBy: ({ priority }) => priority ?? 0,
      render: (row) => row.priorityClass || String(row.priority ?? NONE),
    },
    {
      key: "reason",
      label: names.reason,
      width: "minmax(150px, 1.6fr)",
      sortBy: ({ reason }) => reason,
      render: ({ reason, reasonText: text }) => (
        <span title={text}>{reason === "" ? NONE : reasonText(reason)}</span>
      ),
    },
    {
      key: "since",
      label: names.since,
      width: "92px",
      numeric: true,
      sortBy: ({ createdAt }) => -Date.parse(createdAt),
      render: ({ createdAt }) => <Elapsed since={createdAt} />,
    },
  ];
}

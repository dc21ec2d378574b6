import { useMemo } from "react";
import { Link, useNavigate } from "react-router";
import { gpus } from "../../i18n/numbers.ts";
import { QUEUE_PAGE } from "../../i18n/queue.ts";
import { reasonText } from "../../i18n/reasons.ts";
import { NONE } from "../../i18n/ui.ts";
import { WORKLOAD_COLUMNS, WORKLOADS } from "../../i18n/workloads.ts";
import { workloadKey } from "../../model/names.ts";
import type { Queue, Workload } from "../../model/rows.ts";
import type { Column } from "../../ui/columns.ts";
import { Elapsed } from "../../ui/Elapsed.tsx";
import { workloadPath } from "../../ui/paths.ts";
import { ROW_HEIGHT, usePreferences } from "../../ui/preferences.ts";
import { StateBadge } from "../../ui/StateBadge.tsx";
import { Empty, Loading } from "../../ui/States.tsx";
import { useSearch } from "../../ui/useSearch.ts";
import { VirtualTable } from "../../ui/VirtualTable.tsx";
import { useWorkloadsBelow } from "./useWorkloadsBelow.ts";

const COLUMNS: readonly Column<Workload>[] = [
  {
    key: "position",
    label: WORKLOAD_COLUMNS.position,
    width: "64px",
    numeric: true,
    sortBy: ({ position }) => position ?? Number.MAX_SAFE_INTEGER,
    render: ({ position }) => (position === null ? NONE : QUEUE_PAGE.place(position)),
  },
  {
    key: "name",
    label: WORKLOAD_COLUMNS.name,
    width: "minmax(170px, 1.4fr)",
    sortBy: (row) => row.owner || row.name,
    render: (row) => <b title={row.namespace}>{row.owner || row.name}</b>,
  },
  {
    key: "state",
    label: WORKLOAD_COLUMNS.state,
    width: "108px",
    sortBy: ({ state }) => state,
    render: ({ state }) => <StateBadge state={state} />,
  },
  {
    key: "gpu",
    label: WORKLOAD_COLUMNS.gpu,
    width: "60px",
    numeric: true,
    sortBy: ({ gpu }) => gpu,
    render: ({ gpu, gpuKind }) => (gpuKind === "none" ? NONE : gpus(gpu)),
  },
  {
    key: "reason",
    label: WORKLOAD_COLUMNS.reason,
    width: "minmax(150px, 2fr)",
    sortBy: ({ reason }) => reason,
    render: ({ reason, reasonText: text, nodes }) => (
      <span title={text}>{reason === "" ? nodes.join(", ") : reasonText(reason)}</span>
    ),
  },
  {
    key: "age",
    label: WORKLOAD_COLUMNS.age,
    width: "90px",
    numeric: true,
    sortBy: ({ createdAt }) => -Date.parse(createdAt),
    render: ({ createdAt }) => <Elapsed since={createdAt} />,
  },
];

/** The workloads of the queue and of those below it, in the order of their turns. */
export function WorkloadsTab({ queue }: { queue: Queue }) {
  const { rows, loaded } = useWorkloadsBelow(queue.name);
  const navigate = useNavigate();
  const [search, changeSearch] = useSearch();
  const density = usePreferences((state) => state.density);
  const workloads = useMemo(() => [...rows.values()], [rows]);
  if (!loaded) return <Loading rows={10} />;
  return (
    <VirtualTable
      name={QUEUE_PAGE.tabs.workloads}
      rows={workloads}
      rowKey={workloadKey}
      columns={COLUMNS}
      rowHeight={ROW_HEIGHT[density]}
      minWidth={760}
      sort={search.get("sort") ?? "position"}
      onSort={(sort) => changeSearch({ sort: sort === "position" ? null : sort })}
      onOpen={(row) => void navigate(workloadPath(row))}
      tools={
        <>
          <span>{QUEUE_PAGE.workloadsCount(workloads.length)}</span>
          <Link to={`/workloads?queue=${encodeURIComponent(queue.name)}`}>{WORKLOADS.title}</Link>
        </>
      }
      empty={<Empty title={QUEUE_PAGE.noWorkloads}>{QUEUE_PAGE.noWorkloadsText}</Empty>}
    />
  );
}

import { Button, Select } from "@mantine/core";
import { Link } from "react-router";
import { listEvictions, useEvictionMatrix } from "../../api/scheduling.ts";
import type { RangeName } from "../../api/usage.ts";
import { count, dateTime, gpus } from "../../i18n/numbers.ts";
import { EVICTIONS, ruleName, SCHEDULER } from "../../i18n/scheduler.ts";
import { NONE } from "../../i18n/ui.ts";
import { WORKLOADS } from "../../i18n/workloads.ts";
import { useQueueLabels } from "../../live/useQueueLabels.ts";
import { matrixOf } from "../../model/evictions.ts";
import type { Eviction } from "../../model/rows.ts";
import { DataTable } from "../../ui/DataTable.tsx";
import { OlderButton } from "../../ui/OlderButton.tsx";
import { Page } from "../../ui/Page.tsx";
import { Panel } from "../../ui/Panel.tsx";
import { QueryResult } from "../../ui/QueryResult.tsx";
import { QueueLink } from "../../ui/QueueLink.tsx";
import { RangePicker, useRange } from "../../ui/RangePicker.tsx";
import { Empty } from "../../ui/States.tsx";
import { usePages } from "../../ui/usePages.ts";
import { useSearch } from "../../ui/useSearch.ts";
import { WorkloadLink } from "../../ui/WorkloadLink.tsx";
import { EvictionMatrix } from "./EvictionMatrix.tsx";
import styles from "./Scheduler.module.css";
import { SchedulerTabs } from "./SchedulerTabs.tsx";

const OFFERED: readonly RangeName[] = ["1h", "24h", "7d", "30d"];
const DEFAULT: RangeName = "24h";
const REFETCH_MS = 10_000;
/** The address holds the empty name, which stands for "nobody got the room", as this. */
const NOBODY = "-";
const MOST_QUEUES = 20;
const RULES = Object.entries(EVICTIONS.rules).map(([value, label]) => ({ value, label }));

/** Who evicted from whom: a matrix of queues, and the evictions of a chosen pair. */
export function EvictionsPage() {
  const [search, changeSearch] = useSearch();
  const [range, setRange] = useRange(DEFAULT);
  const rule = search.get("rule") ?? "";
  const matrix = useEvictionMatrix(range);
  const [evictor, victim] = [search.get("by"), search.get("from")];
  const chosen =
    evictor === null || victim === null
      ? null
      : { evictor: evictor === NOBODY ? "" : evictor, victim };
  return (
    <Page
      title={SCHEDULER.title}
      note={EVICTIONS.note}
      tools={<RangePicker value={range} offered={OFFERED} onChange={setRange} />}
    >
      <SchedulerTabs active="evictions" />
      <Panel
        title={EVICTIONS.matrix}
        note={EVICTIONS.matrixNote}
        tools={
          <Select
            size="xs"
            w={230}
            aria-label={EVICTIONS.rule}
            placeholder={EVICTIONS.anyRule}
            data={RULES}
            value={rule === "" ? null : rule}
            clearable
            clearButtonProps={{ "aria-label": WORKLOADS.clear(EVICTIONS.rule) }}
            onChange={(value) => changeSearch({ rule: value })}
          />
        }
      >
        <QueryResult query={matrix}>
          {({ items }) => (
            <EvictionMatrix
              matrix={matrixOf(items, rule, MOST_QUEUES)}
              chosen={chosen}
              onChoose={(by, from) => changeSearch({ by: by || NOBODY, from })}
            />
          )}
        </QueryResult>
      </Panel>
      <List
        range={range}
        rule={rule}
        chosen={chosen}
        onClear={() => changeSearch({ by: null, from: null })}
      />
    </Page>
  );
}

type Pair = { readonly evictor: string; readonly victim: string };
type ListProps = { range: RangeName; rule: string; chosen: Pair | null; onClear: () => void };

function List({ range, rule, chosen, onClear }: ListProps) {
  const label = useQueueLabels();
  const filter = chosen === null ? {} : { queue: chosen.victim, evictorQueue: chosen.evictor };
  const pages = usePages(
    ["evictions", range, rule, filter],
    (cursor, signal) => listEvictions(range, { ...filter, rule }, cursor, signal),
    REFETCH_MS,
  );
  const note =
    chosen === null
      ? undefined
      : EVICTIONS.pair(label(chosen.evictor) || EVICTIONS.nobody, label(chosen.victim));
  return (
    <Panel
      title={EVICTIONS.title}
      note={note}
      tools={
        chosen !== null && (
          <Button size="compact-sm" variant="subtle" onClick={onClear}>
            {EVICTIONS.clear}
          </Button>
        )
      }
      flush
    >
      <QueryResult query={pages}>
        {(evictions) => {
          // The server cannot filter by "nobody", so those rows are chosen here.
          const rows = evictions.filter(
            ({ evictorQueue }) => chosen?.evictor !== "" || evictorQueue === "",
          );
          if (rows.length === 0) {
            return <Empty title={EVICTIONS.emptyTitle}>{EVICTIONS.empty}</Empty>;
          }
          return (
            <>
              <DataTable
                name={EVICTIONS.title}
                columns={EVICTIONS.columns}
                numberColumns={[5, 6, 7]}
              >
                {rows.map((row) => (
                  <Row key={row.id} eviction={row} />
                ))}
              </DataTable>
              {pages.hasMore && (
                <div className={styles.foot}>
                  <OlderButton pages={pages} />
                </div>
              )}
            </>
          );
        }}
      </QueryResult>
    </Panel>
  );
}

function Row({ eviction }: { eviction: Eviction }) {
  const { at, workload, queue, rule, evictor, pods, session, text } = eviction;
  return (
    <tr title={text}>
      <td>
        <time dateTime={at}>{dateTime(at)}</time>
      </td>
      <th scope="row">
        <WorkloadLink workload={workload} />
      </th>
      <td>{queue === "" ? NONE : <QueueLink queue={queue} />}</td>
      <td>{ruleName(rule)}</td>
      <td>{evictor === "" ? NONE : <WorkloadLink workload={evictor} />}</td>
      <td>{count(pods)}</td>
      <td>{gpus(eviction.gpu)}</td>
      <td>
        <Link to={`/scheduler/sessions/${session}`}>{session}</Link>
      </td>
    </tr>
  );
}

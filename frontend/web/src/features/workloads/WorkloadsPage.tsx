import { useMemo } from "react";
import { useNavigate } from "react-router";
import { LOADING_MORE } from "../../i18n/ui.ts";
import { WORKLOADS } from "../../i18n/workloads.ts";
import { derivedOnce } from "../../live/derived.ts";
import { useTopic } from "../../live/react.tsx";
import { useHues } from "../../live/useHues.ts";
import { useQueueLabels } from "../../live/useQueueLabels.ts";
import { useUnchanged } from "../../live/useUnchanged.ts";
import { type CreationOrder, creationOrder, NO_ORDER } from "../../model/creationOrder.ts";
import type { TopicRows } from "../../model/rows.ts";
import { ancestors, type NamedQueue } from "../../model/tree.ts";
import { Page } from "../../ui/Page.tsx";
import { workloadPath } from "../../ui/paths.ts";
import { usePreferences } from "../../ui/preferences.ts";
import { RichText } from "../../ui/RichText.tsx";
import { Empty, Failure, Loading } from "../../ui/States.tsx";
import { useSearch } from "../../ui/useSearch.ts";
import { VirtualTable } from "../../ui/VirtualTable.tsx";
import { workloadColumns } from "./columns.tsx";
import { filterWorkloads, readFilter } from "./filter.ts";
import { isFiltered, WorkloadFilters } from "./WorkloadFilters.tsx";

type Row = TopicRows["workloads"];
const newestFirst = orderNewestFirst();
const keyOf = ({ k }: Row) => k;

export function WorkloadsPage() {
  const { rows, loaded, isPartial, problem } = useTopic("workloads");
  const { rows: queues } = useTopic("queues");
  const hues = useHues();
  const navigate = useNavigate();
  const [search, changeSearch] = useSearch();
  const isCompact = usePreferences((state) => state.density) === "compact";
  const label = useQueueLabels();
  const columns = useMemo(() => workloadColumns(hues, label), [hues, label]);
  const filter = useUnchanged(readFilter(search));
  const isUnder = useIsUnder(queues);
  const matching = useMemo(
    () => filterWorkloads(newestFirst(rows), filter, isUnder),
    [rows, filter, isUnder],
  );
  const reasons = useUnchanged(
    useMemo(
      () => [...new Set([...rows.values()].map((row) => row.reason).filter(Boolean))].sort(),
      [rows],
    ),
  );
  const queueChoices = useUnchanged(
    useMemo(
      () => [...queues.keys()].sort().map((value) => ({ value, label: label(value) })),
      [queues, label],
    ),
  );
  if (problem !== null) return <Failure title={problem.title} detail={problem.detail} />;
  return (
    <Page
      title={WORKLOADS.title}
      note={
        loaded ? WORKLOADS.count(matching.length, rows.size) : isPartial ? LOADING_MORE : undefined
      }
    >
      {!loaded && matching.length === 0 ? (
        <Loading rows={12} />
      ) : (
        <VirtualTable
          name={WORKLOADS.title}
          rows={matching}
          rowKey={keyOf}
          columns={columns}
          rowHeight={isCompact ? 42 : 52}
          minWidth={1014}
          sort={search.get("sort") ?? "state"}
          onSort={(sort) => changeSearch({ sort: sort === "state" ? null : sort })}
          onOpen={(row) => navigate(workloadPath(row))}
          tools={
            <WorkloadFilters
              search={search}
              onChange={changeSearch}
              queues={queueChoices}
              reasons={reasons}
            />
          }
          empty={
            isFiltered(search) ? (
              <Empty title={WORKLOADS.noMatchTitle}>{WORKLOADS.noMatch}</Empty>
            ) : (
              <Empty title={WORKLOADS.emptyTitle}>
                <RichText
                  text={WORKLOADS.empty}
                  parts={{ scheduler: <code>{WORKLOADS.scheduler}</code> }}
                />
              </Empty>
            )
          }
        />
      )}
    </Page>
  );
}

/**
 * Return a function that says whether a queue is a certain ancestor or below it.
 *
 * It stays the same function until the name or parent of a queue changes; amounts change too often.
 */
function useIsUnder(queues: ReadonlyMap<string, NamedQueue>) {
  const namesAndParents = useMemo(
    () => [...queues.values()].map(({ name, parent }) => ({ name, parent })),
    [queues],
  );
  const structure = useUnchanged(namesAndParents);
  return useMemo(() => {
    const byName = new Map(structure.map((queue) => [queue.name, queue]));
    return (queue: string, ancestor: string) =>
      queue === ancestor || ancestors(byName, queue).includes(ancestor);
  }, [structure]);
}

/** Return a function that orders the rows, newest first; it computes the order once for each version of the rows. */
function orderNewestFirst(): (rows: ReadonlyMap<string, Row>) => readonly Row[] {
  let last: CreationOrder<Row> = NO_ORDER;
  return derivedOnce((rows) => {
    last = creationOrder(rows, last);
    return last.rows;
  });
}

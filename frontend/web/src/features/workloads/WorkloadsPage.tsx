import { Button, Select, TextInput } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import { useMemo } from "react";
import { useNavigate } from "react-router";
import { reasonText, stateText } from "../../i18n/reasons.ts";
import { LOADING_REST } from "../../i18n/ui.ts";
import { WORKLOADS } from "../../i18n/workloads.ts";
import { useTopic } from "../../live/react.tsx";
import { useHues } from "../../live/useHues.ts";
import { useQueueLabels } from "../../live/useQueueLabels.ts";
import { useUnchanged } from "../../live/useUnchanged.ts";
import { workloadKey } from "../../model/names.ts";
import type { Workload } from "../../model/rows.ts";
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
import styles from "./Workloads.module.css";

const STATE_CHOICES = ["pending", "gated", "partial", "running", "finished", "failed"];

export function WorkloadsPage() {
  const { rows, loaded, begun, problem } = useTopic("workloads");
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
    () => filterWorkloads(rows.values(), filter, isUnder).sort(newestFirst),
    [rows, filter, isUnder],
  );
  const reasons = useMemo(
    () => [...new Set([...rows.values()].map((row) => row.reason).filter(Boolean))].sort(),
    [rows],
  );
  if (problem !== null) return <Failure title={problem.title} detail={problem.detail} />;
  const isFiltered = ["state", "queue", "reason", "q"].some((key) => search.get(key));
  const select = (key: string, name: string, data: { value: string; label: string }[]) => (
    <Select
      className={styles.filter ?? ""}
      size="xs"
      aria-label={name}
      placeholder={name}
      data={data}
      value={search.get(key)}
      clearable
      searchable
      clearButtonProps={{ "aria-label": WORKLOADS.clear(name) }}
      onChange={(value) => changeSearch({ [key]: value })}
    />
  );
  return (
    <Page
      title={WORKLOADS.title}
      note={loaded ? WORKLOADS.count(matching.length, rows.size) : begun ? LOADING_REST : undefined}
    >
      {!loaded && matching.length === 0 ? (
        <Loading rows={12} />
      ) : (
        <VirtualTable
          name={WORKLOADS.title}
          rows={matching}
          rowKey={workloadKey}
          columns={columns}
          rowHeight={isCompact ? 42 : 52}
          minWidth={1014}
          sort={search.get("sort") ?? "state"}
          onSort={(sort) => changeSearch({ sort: sort === "state" ? null : sort })}
          onOpen={(row) => navigate(workloadPath(row))}
          tools={
            <>
              <TextInput
                data-page-search
                className={styles.filter ?? ""}
                size="xs"
                aria-label={WORKLOADS.searchLabel}
                placeholder={WORKLOADS.search}
                leftSection={<IconSearch size={14} />}
                value={search.get("q") ?? ""}
                onChange={(event) => changeSearch({ q: event.currentTarget.value })}
              />
              {select(
                "state",
                WORKLOADS.anyState,
                STATE_CHOICES.map((value) => ({ value, label: stateText(value) })),
              )}
              {select(
                "queue",
                WORKLOADS.anyQueue,
                [...queues.keys()].sort().map((value) => ({ value, label: label(value) })),
              )}
              {select(
                "reason",
                WORKLOADS.anyReason,
                reasons.map((value) => ({ value, label: reasonText(value) })),
              )}
              {isFiltered && (
                <Button
                  size="xs"
                  variant="subtle"
                  onClick={() => changeSearch({ state: null, queue: null, reason: null, q: null })}
                >
                  {WORKLOADS.clearAll}
                </Button>
              )}
            </>
          }
          empty={
            isFiltered ? (
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

/** Return whether a queue is another one or below it. Only names and parents matter, not amounts. */
function useIsUnder(queues: ReadonlyMap<string, NamedQueue>) {
  const named = useMemo(
    () => [...queues.values()].map(({ name, parent }) => ({ name, parent })),
    [queues],
  );
  const structure = useUnchanged(named);
  return useMemo(() => {
    const byName = new Map(structure.map((queue) => [queue.name, queue]));
    return (queue: string, ancestor: string) =>
      queue === ancestor || ancestors(byName, queue).includes(ancestor);
  }, [structure]);
}

function newestFirst(a: Workload, b: Workload): number {
  if (a.createdAt !== b.createdAt) return a.createdAt < b.createdAt ? 1 : -1;
  return workloadKey(a) < workloadKey(b) ? -1 : 1;
}

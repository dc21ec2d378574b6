import { Button, Select, TextInput } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import { useMemo } from "react";
import { useNavigate } from "react-router";
import { reasonWords, STATES } from "../../i18n/en.ts";
import { useTopic } from "../../live/react.tsx";
import { useHues } from "../../live/useHues.ts";
import { useQueueLabels } from "../../live/useQueueLabels.ts";
import type { Workload } from "../../model/rows.ts";
import { ancestors } from "../../model/tree.ts";
import { count, plural } from "../../model/units.ts";
import { Page } from "../../ui/Page.tsx";
import { usePreferences } from "../../ui/preferences.ts";
import { Empty, Failure, Loading } from "../../ui/States.tsx";
import { useSearch } from "../../ui/useSearch.ts";
import { VirtualTable } from "../../ui/VirtualTable.tsx";
import { workloadColumns } from "./columns.tsx";
import { filterWorkloads, readFilter } from "./filter.ts";
import styles from "./Workloads.module.css";

const STATE_CHOICES = ["pending", "gated", "partial", "running", "finished", "failed"];

export function workloadKey(row: Workload): string {
  return `${row.namespace}/${row.name}`;
}

export function WorkloadsPage() {
  const { rows, version, loaded, problem } = useTopic("workloads");
  const queues = useTopic("queues");
  const hues = useHues();
  const navigate = useNavigate();
  const [search, change] = useSearch();
  const isCompact = usePreferences((state) => state.density) === "compact";
  const label = useQueueLabels();
  const columns = useMemo(() => workloadColumns(hues, label), [hues, label]);
  const query = search.toString();
  // biome-ignore lint/correctness/useExhaustiveDependencies: version and query say when the rows or the filter changed
  const found = useMemo(
    () =>
      filterWorkloads(
        rows.values(),
        readFilter(search),
        (queue, ancestor) => queue === ancestor || ancestors(queues.rows, queue).includes(ancestor),
      ).sort((a, b) => (a.createdAt < b.createdAt ? 1 : -1)),
    [rows, version, query],
  );
  // biome-ignore lint/correctness/useExhaustiveDependencies: version says when the rows changed
  const reasons = useMemo(
    () => [...new Set([...rows.values()].map((row) => row.reason).filter(Boolean))].sort(),
    [rows, version],
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
      clearButtonProps={{ "aria-label": `Clear ${name.toLowerCase()}` }}
      onChange={(value) => change({ [key]: value })}
    />
  );
  return (
    <Page
      title="Workloads"
      note={loaded ? `${count(found.length)} of ${plural(rows.size, "workload")}` : undefined}
    >
      {!loaded ? (
        <Loading rows={12} />
      ) : (
        <VirtualTable
          name="Workloads"
          rows={found}
          rowKey={workloadKey}
          columns={columns}
          rowHeight={isCompact ? 42 : 52}
          minWidth={1074}
          sort={search.get("sort") ?? "state"}
          onSort={(sort) => change({ sort: sort === "state" ? null : sort })}
          onOpen={(row) => navigate(`/workloads/${row.namespace}/${row.name}`)}
          tools={
            <>
              <TextInput
                data-page-search
                className={styles.filter ?? ""}
                size="xs"
                aria-label="Search workloads"
                placeholder="Search"
                leftSection={<IconSearch size={14} />}
                value={search.get("q") ?? ""}
                onChange={(event) => change({ q: event.currentTarget.value })}
              />
              {select(
                "state",
                "Any state",
                STATE_CHOICES.map((value) => ({ value, label: STATES[value] ?? value })),
              )}
              {select(
                "queue",
                "Any queue",
                [...queues.rows.keys()].sort().map((value) => ({ value, label: label(value) })),
              )}
              {select(
                "reason",
                "Any reason",
                reasons.map((value) => ({ value, label: reasonWords(value) })),
              )}
              {isFiltered && (
                <Button
                  size="xs"
                  variant="subtle"
                  onClick={() => change({ state: null, queue: null, reason: null, q: null })}
                >
                  Clear filters
                </Button>
              )}
            </>
          }
          empty={
            isFiltered ? (
              <Empty title="Nothing matches these filters">Clear a filter to see more.</Empty>
            ) : (
              <Empty title="There is no workload yet">
                Create a pod with <code>schedulerName: kai-scheduler</code> and a queue label; it
                appears here.
              </Empty>
            )
          }
        />
      )}
    </Page>
  );
}

import { Select } from "@mantine/core";
import { useNavigate } from "react-router";
import { listChanges } from "../../api/changes.ts";
import { CHANGE_STATES, CHANGES } from "../../i18n/changes.ts";
import { WORKLOADS } from "../../i18n/workloads.ts";
import type { ChangeSummary } from "../../model/rows.ts";
import type { Column } from "../../ui/columns.ts";
import { Elapsed } from "../../ui/Elapsed.tsx";
import { OlderButton } from "../../ui/OlderButton.tsx";
import { Page } from "../../ui/Page.tsx";
import { QueryFailure } from "../../ui/QueryFailure.tsx";
import { Empty, Loading } from "../../ui/States.tsx";
import { usePages } from "../../ui/usePages.ts";
import { useSearch } from "../../ui/useSearch.ts";
import { VirtualTable } from "../../ui/VirtualTable.tsx";
import { ChangeBadge } from "./ChangeBadge.tsx";

const REFETCH_MS = 10_000;
const STATES = Object.entries(CHANGE_STATES).map(([value, label]) => ({ value, label }));

const COLUMNS: readonly Column<ChangeSummary>[] = [
  {
    key: "title",
    label: CHANGES.columns.title,
    width: "minmax(180px, 2fr)",
    sortBy: ({ title }) => title,
    render: ({ title }) => <b>{title}</b>,
  },
  {
    key: "state",
    label: CHANGES.columns.state,
    width: "168px",
    sortBy: ({ state }) => CHANGE_STATES[state],
    render: ({ state }) => <ChangeBadge state={state} />,
  },
  {
    key: "queues",
    label: CHANGES.columns.queues,
    width: "minmax(120px, 1.4fr)",
    render: ({ queues }) => <span title={queues.join(", ")}>{queues.join(", ")}</span>,
  },
  {
    key: "author",
    label: CHANGES.columns.author,
    width: "minmax(90px, 0.6fr)",
    sortBy: ({ author }) => author,
    render: ({ author }) => author,
  },
  {
    key: "changed",
    label: CHANGES.columns.changed,
    width: "96px",
    numeric: true,
    sortBy: ({ changedAt }) => -Date.parse(changedAt),
    render: ({ changedAt }) => <Elapsed since={changedAt} />,
  },
];

/** The change sets of all users, newest first. */
export function ChangesPage() {
  const pages = usePages(["changes"], listChanges, REFETCH_MS);
  const navigate = useNavigate();
  const [search, changeSearch] = useSearch();
  const state = search.get("state");
  if (pages.error !== null) {
    return (
      <Page title={CHANGES.title}>
        <QueryFailure error={pages.error} onRetry={() => void pages.refetch()} />
      </Page>
    );
  }
  const { data: rows = [], hasMore } = pages;
  const matching = rows.filter((row) => state === null || row.state === state);
  return (
    <Page
      title={CHANGES.title}
      note={pages.data === undefined ? undefined : CHANGES.count(rows.length, !hasMore)}
    >
      {pages.data === undefined ? (
        <Loading rows={10} />
      ) : (
        <VirtualTable
          name={CHANGES.title}
          rows={matching}
          rowKey={changeRowKey}
          columns={COLUMNS}
          rowHeight={42}
          minWidth={720}
          sort={search.get("sort") ?? "changed"}
          onSort={(sort) => changeSearch({ sort: sort === "changed" ? null : sort })}
          onOpen={({ id }) => void navigate(`/changes/${id}`)}
          tools={
            <Select
              size="xs"
              aria-label={CHANGES.columns.state}
              placeholder={CHANGES.anyState}
              data={STATES}
              value={state}
              clearable
              clearButtonProps={{ "aria-label": WORKLOADS.clear(CHANGES.columns.state) }}
              onChange={(value) => changeSearch({ state: value })}
            />
          }
          empty={
            rows.length === 0 ? (
              <Empty title={CHANGES.emptyTitle}>{CHANGES.empty}</Empty>
            ) : (
              <Empty title={CHANGES.noMatchTitle}>{CHANGES.noMatch}</Empty>
            )
          }
          foot={hasMore ? <OlderButton pages={pages} /> : undefined}
        />
      )}
    </Page>
  );
}

function changeRowKey({ id }: ChangeSummary): string {
  return String(id);
}

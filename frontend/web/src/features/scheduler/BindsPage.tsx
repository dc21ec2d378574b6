import { Button, Select } from "@mantine/core";
import { Link } from "react-router";
import { listBindRequests, useBindRequest } from "../../api/scheduling.ts";
import { BINDS } from "../../i18n/binds.ts";
import { count, dateTime } from "../../i18n/numbers.ts";
import { SCHEDULER } from "../../i18n/scheduler.ts";
import { NONE } from "../../i18n/ui.ts";
import type { BindRequest } from "../../model/rows.ts";
import { DataTable } from "../../ui/DataTable.tsx";
import { Elapsed } from "../../ui/Elapsed.tsx";
import { Fact, FactList } from "../../ui/FactList.tsx";
import { NodeLink } from "../../ui/NodeLink.tsx";
import { OlderButton } from "../../ui/OlderButton.tsx";
import { Page } from "../../ui/Page.tsx";
import { Panel } from "../../ui/Panel.tsx";
import { bindPath } from "../../ui/paths.ts";
import { QueryResult } from "../../ui/QueryResult.tsx";
import { Badge } from "../../ui/StateBadge.tsx";
import { Empty } from "../../ui/States.tsx";
import { useChoice } from "../../ui/useChoice.ts";
import { usePages } from "../../ui/usePages.ts";
import { useSearch } from "../../ui/useSearch.ts";
import styles from "./Scheduler.module.css";
import { SchedulerTabs } from "./SchedulerTabs.tsx";

const REFETCH_MS = 3_000;
/** What the address states -> the phases that the server is asked for; the first is shown by default. */
const FILTERS = {
  open: "Pending,Failed",
  Pending: "Pending",
  Failed: "Failed",
  Succeeded: "Succeeded",
  all: "",
} as const;
const FILTER_KEYS = Object.keys(FILTERS) as (keyof typeof FILTERS)[];
const CHOICES = FILTER_KEYS.map((value) => ({ value, label: BINDS.filters[value] }));
const TONES = { Succeeded: "good", Failed: "bad" } as const;

/** The decisions that the binder carries out, and one of them in full. */
export function BindsPage() {
  const [search, changeSearch] = useSearch();
  const [filter, setFilter] = useChoice("phase", FILTER_KEYS, "open");
  const chosen = search.get("request");
  const pages = usePages(
    ["bind-requests", filter],
    (cursor, signal) => listBindRequests(FILTERS[filter], cursor, signal),
    REFETCH_MS,
  );
  return (
    <Page title={SCHEDULER.title} note={BINDS.note}>
      <SchedulerTabs active="binds" />
      {chosen !== null && (
        <Request request={chosen} onClose={() => changeSearch({ request: null })} />
      )}
      <Panel
        title={BINDS.table}
        note={pages.data && BINDS.count(pages.data.length, !pages.hasMore)}
        tools={
          <Select
            size="xs"
            aria-label={BINDS.state}
            data={CHOICES}
            value={filter}
            allowDeselect={false}
            onChange={(value) => value !== null && setFilter(value)}
          />
        }
        flush
      >
        <QueryResult query={pages}>
          {(requests) =>
            requests.length === 0 ? (
              filter === "open" ? (
                <Empty title={BINDS.emptyTitle}>{BINDS.empty}</Empty>
              ) : (
                <Empty title={BINDS.noMatchTitle}>{BINDS.noMatch}</Empty>
              )
            ) : (
              <>
                <DataTable name={BINDS.table} columns={BINDS.columns} numberColumns={[3, 5]}>
                  {requests.map((request) => (
                    <Row key={`${request.namespace}/${request.name}`} request={request} />
                  ))}
                </DataTable>
                {pages.hasMore && (
                  <div className={styles.foot}>
                    <OlderButton pages={pages} />
                  </div>
                )}
              </>
            )
          }
        </QueryResult>
      </Panel>
    </Page>
  );
}

function Row({ request }: { request: BindRequest }) {
  const { namespace, name, pod, node, failedAttempts, createdAt } = request;
  return (
    <tr>
      <th scope="row">
        <Link to={bindPath(namespace, name)}>{`${namespace}/${pod}`}</Link>
      </th>
      <td>
        <NodeLink node={node} />
      </td>
      <td>
        <Phase request={request} />
      </td>
      <td>{count(failedAttempts)}</td>
      <td>{groupsText(request)}</td>
      <td>
        <Elapsed since={createdAt} />
      </td>
    </tr>
  );
}

function Phase({ request: { phase, reason } }: { request: BindRequest }) {
  const known = phase || "Pending";
  return (
    <span title={reason}>
      <Badge tone={TONES[known as keyof typeof TONES] ?? "accent"}>
        {BINDS.phases[known] ?? known}
      </Badge>
    </span>
  );
}

function groupsText({ gpuGroups }: BindRequest): string {
  return gpuGroups.length === 0 ? NONE : gpuGroups.join(", ");
}

function Request({ request: key, onClose }: { request: string; onClose: () => void }) {
  const query = useBindRequest(key);
  return (
    <Panel
      title={BINDS.request(key)}
      tools={
        <Button size="compact-sm" variant="subtle" onClick={onClose}>
          {BINDS.close}
        </Button>
      }
    >
      <QueryResult query={query} rows={2}>
        {(request) =>
          request === null ? (
            <Empty title={BINDS.missingTitle}>{BINDS.missing}</Empty>
          ) : (
            <FactList>
              <Fact name={BINDS.state}>
                <Phase request={request} />
              </Fact>
              <Fact name={BINDS.node}>
                <NodeLink node={request.node} />
              </Fact>
              <Fact name={BINDS.failures}>{count(request.failedAttempts)}</Fact>
              <Fact name={BINDS.resourceType}>{request.resourceType || NONE}</Fact>
              <Fact name={BINDS.groups}>{groupsText(request)}</Fact>
              <Fact name={BINDS.created}>{dateTime(request.createdAt)}</Fact>
              {request.reason !== "" && <Fact name={BINDS.reason}>{request.reason}</Fact>}
            </FactList>
          )
        }
      </QueryResult>
    </Panel>
  );
}

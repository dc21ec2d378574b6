import { Select, TextInput } from "@mantine/core";
import { type AuditFilter, listAudit } from "../../api/changes.ts";
import { AUDIT, pointerName, pointerValue } from "../../i18n/changes.ts";
import { dateTime } from "../../i18n/numbers.ts";
import { NONE } from "../../i18n/ui.ts";
import { useTopic } from "../../live/react.tsx";
import type { AuditEntry } from "../../model/rows.ts";
import { Card } from "../../ui/Card.tsx";
import { ColumnHeads } from "../../ui/ColumnHeads.tsx";
import { OlderButton } from "../../ui/OlderButton.tsx";
import { Page } from "../../ui/Page.tsx";
import { QueryResult } from "../../ui/QueryResult.tsx";
import { ScrollRegion } from "../../ui/ScrollRegion.tsx";
import { Badge } from "../../ui/StateBadge.tsx";
import { Empty } from "../../ui/States.tsx";
import { useDebounced } from "../../ui/useDebounced.ts";
import { usePages } from "../../ui/usePages.ts";
import { useSearch } from "../../ui/useSearch.ts";
import styles from "./Audit.module.css";
import { readAuditFilter } from "./filter.ts";

const REFETCH_MS = 15_000;
const TYPING_MS = 400;
const STATES = Object.entries(AUDIT.states).map(([value, label]) => ({ value, label }));
const KINDS = Object.entries(AUDIT.kinds).map(([value, label]) => ({ value, label }));
const TONES: Record<AuditEntry["state"], "good" | "warn" | "bad"> = {
  done: "good",
  intended: "warn",
  unclear: "warn",
  failed: "bad",
};

/** Who wrote what to which queue, when and why. */
export function AuditPage() {
  const [search, changeSearch] = useSearch();
  const filter = readAuditFilter(search);
  const settled = useDebounced(JSON.stringify(filter), TYPING_MS);
  const pages = usePages(
    ["audit", settled],
    (cursor, signal) => listAudit(JSON.parse(settled) as AuditFilter, cursor, signal),
    REFETCH_MS,
  );
  const isFiltered = Object.values(filter).some((value) => value !== "");
  return (
    <Page title={AUDIT.title} note={AUDIT.note}>
      <Card name={AUDIT.title}>
        <Filters search={search} onChange={changeSearch} />
        <QueryResult query={pages} rows={10}>
          {(entries) =>
            entries.length > 0 ? (
              <ScrollRegion className={styles.scroll} name={AUDIT.entries}>
                <Entries entries={entries} />
                {pages.hasMore && <OlderButton pages={pages} />}
              </ScrollRegion>
            ) : isFiltered ? (
              <Empty title={AUDIT.noMatchTitle}>{AUDIT.noMatch}</Empty>
            ) : (
              <Empty title={AUDIT.emptyTitle}>{AUDIT.empty}</Empty>
            )
          }
        </QueryResult>
      </Card>
    </Page>
  );
}

type FilterProps = {
  search: URLSearchParams;
  onChange: (change: Record<string, string | null>) => void;
};

function Filters({ search, onChange }: FilterProps) {
  const { rows: queues } = useTopic("queues");
  const select = (key: string, name: string, data: { value: string; label: string }[]) => (
    <Select
      size="xs"
      aria-label={name}
      placeholder={name}
      data={data}
      value={search.get(key)}
      clearable
      searchable
      limit={100}
      clearButtonProps={{ "aria-label": AUDIT.clear(name) }}
      onChange={(value) => onChange({ [key]: value })}
    />
  );
  const day = (key: string, name: string) => (
    <label className={styles.day}>
      {name}
      <input
        type="date"
        value={search.get(key) ?? ""}
        onChange={(event) => onChange({ [key]: event.currentTarget.value })}
      />
    </label>
  );
  return (
    <div className={styles.bar}>
      <TextInput
        data-page-search
        size="xs"
        aria-label={AUDIT.actor}
        placeholder={AUDIT.anyActor}
        value={search.get("actor") ?? ""}
        onChange={(event) => onChange({ actor: event.currentTarget.value })}
      />
      {select(
        "queue",
        AUDIT.anyQueue,
        [...queues.keys()].sort().map((value) => ({ value, label: value })),
      )}
      {select("kind", AUDIT.anyKind, KINDS)}
      {select("state", AUDIT.anyState, STATES)}
      <div className={styles.days}>
        {day("since", AUDIT.since)}
        {day("until", AUDIT.until)}
      </div>
    </div>
  );
}

function Entries({ entries }: { entries: readonly AuditEntry[] }) {
  return (
    <table className={styles.table}>
      <ColumnHeads labels={AUDIT.columns} />
      <tbody>
        {entries.map((entry) => (
          <tr key={entry.id}>
            <td className={styles.when}>
              <time dateTime={entry.at}>{dateTime(entry.at)}</time>
            </td>
            <td>{entry.actor}</td>
            <td>
              {AUDIT.written(entry.action, entry.kind)} <b>{entry.target || entry.queue}</b>{" "}
              {entry.state !== "done" && (
                <Badge tone={TONES[entry.state]}>{AUDIT.states[entry.state]}</Badge>
              )}
            </td>
            <td>
              <Diff entry={entry} />
            </td>
            <td className={styles.why}>
              {entry.reason || NONE}
              {entry.requestId !== "" && (
                <div className={styles.request}>{AUDIT.request(entry.requestId)}</div>
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** The values before and after; what a new or a deleted queue did not have is left out. */
function Diff({ entry: { diff } }: { entry: AuditEntry }) {
  if (diff.length === 0) return NONE;
  return (
    <ul className={styles.diff}>
      {diff.map(({ pointer, before, after }) => (
        <li key={pointer}>
          <span className={styles.field}>{pointerName(pointer)}</span>{" "}
          {AUDIT.change(pointerValue(pointer, before), pointerValue(pointer, after))}
        </li>
      ))}
    </ul>
  );
}

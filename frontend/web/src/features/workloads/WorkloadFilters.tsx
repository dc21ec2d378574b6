import { Button, Select, TextInput } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import { memo } from "react";
import { reasonText, stateText } from "../../i18n/reasons.ts";
import { WORKLOADS } from "../../i18n/workloads.ts";
import styles from "./Workloads.module.css";

const STATES = ["pending", "gated", "partial", "running", "finished", "failed"];
const FILTERS = ["state", "queue", "reason", "q"] as const;
/** A list of thousands of options takes longer to draw than the whole table. */
const MOST_OPTIONS = 100;

type Choice = { readonly value: string; readonly label: string };
type Props = {
  search: URLSearchParams;
  onChange: (changes: Record<string, string | null>) => void;
  queues: readonly Choice[];
  reasons: readonly string[];
};

/** Whether the address states a filter. */
export function isFiltered(search: URLSearchParams): boolean {
  return FILTERS.some((key) => search.get(key));
}

/** The filters above the table; drawn again only when a choice changes, not with every row. */
export const WorkloadFilters = memo(function WorkloadFilters(props: Props) {
  const { search, onChange, queues, reasons } = props;
  const select = (key: string, name: string, data: readonly Choice[]) => (
    <Select
      className={styles.filter ?? ""}
      size="xs"
      aria-label={name}
      placeholder={name}
      data={[...data]}
      value={search.get(key)}
      clearable
      searchable
      limit={MOST_OPTIONS}
      clearButtonProps={{ "aria-label": WORKLOADS.clear(name) }}
      onChange={(value) => onChange({ [key]: value })}
    />
  );
  return (
    <>
      <TextInput
        data-page-search
        className={styles.filter ?? ""}
        size="xs"
        aria-label={WORKLOADS.searchLabel}
        placeholder={WORKLOADS.search}
        leftSection={<IconSearch size={14} />}
        value={search.get("q") ?? ""}
        onChange={(event) => onChange({ q: event.currentTarget.value })}
      />
      {select(
        "state",
        WORKLOADS.anyState,
        STATES.map((value) => ({ value, label: stateText(value) })),
      )}
      {select("queue", WORKLOADS.anyQueue, queues)}
      {select(
        "reason",
        WORKLOADS.anyReason,
        reasons.map((value) => ({ value, label: reasonText(value) })),
      )}
      {isFiltered(search) && (
        <Button
          size="xs"
          variant="subtle"
          onClick={() => onChange({ state: null, queue: null, reason: null, q: null })}
        >
          {WORKLOADS.clearAll}
        </Button>
      )}
    </>
  );
});

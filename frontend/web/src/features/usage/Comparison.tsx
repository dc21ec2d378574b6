import { Select } from "@mantine/core";
import { useMemo } from "react";
import { type RangeName, useQueuesHistory } from "../../api/usage.ts";
import { useMe } from "../../api/useMe.ts";
import { LineChart } from "../../charts/LineChart.tsx";
import { SERIES_CHART, USAGE } from "../../i18n/usage.ts";
import { useTopic } from "../../live/react.tsx";
import { maySeeUse } from "../../model/rights.ts";
import { Panel } from "../../ui/Panel.tsx";
import { QueryFailure } from "../../ui/QueryFailure.tsx";
import { Loading } from "../../ui/States.tsx";
import styles from "./Usage.module.css";

const COLORS = ["var(--hue-0)", "var(--hue-3)"];

type Props = {
  range: RangeName;
  search: URLSearchParams;
  onChange: (change: Record<string, string | null>) => void;
};

/** The allocated GPUs of two queues over the same time. */
export function Comparison({ range, search, onChange }: Props) {
  const { rows: queues } = useTopic("queues");
  const me = useMe();
  const offered = useMemo(
    () => [...queues.keys()].filter((name) => maySeeUse(me, queues, name)).sort(),
    [queues, me],
  );
  const chosen = [search.get("a"), search.get("b")];
  const names = [...new Set(chosen.filter((name) => name !== null))];
  const history = useQueuesHistory(names, range);
  return (
    <Panel title={USAGE.compare} note={USAGE.compareNote}>
      <div className={styles.pickers}>
        {[["a", USAGE.first] as const, ["b", USAGE.second] as const].map(([key, label]) => (
          <Select
            key={key}
            size="xs"
            label={label}
            placeholder={USAGE.choose}
            data={offered}
            value={search.get(key)}
            searchable
            clearable
            limit={100}
            onChange={(name) => onChange({ [key]: name })}
          />
        ))}
      </div>
      {names.length === 0 ? (
        <p className={styles.hint}>{USAGE.chooseTwo}</p>
      ) : history.error !== null ? (
        <QueryFailure error={history.error} onRetry={() => void history.refetch()} />
      ) : history.data === undefined ? (
        <Loading rows={5} />
      ) : (
        <LineChart
          summary={SERIES_CHART.summary(names, history.data.times.length)}
          file="queues.csv"
          times={history.data.times}
          stepSeconds={history.data.stepSeconds}
          series={history.data.series.map(({ queue, allocated }, index) => ({
            name: queue,
            values: allocated ?? [],
            color: COLORS[index % COLORS.length] ?? "var(--accent)",
          }))}
        />
      )}
    </Panel>
  );
}

import { Link } from "react-router";
import { useWorkloadEvents } from "../../api/details.ts";
import { listEvictions } from "../../api/scheduling.ts";
import { dateTime } from "../../i18n/numbers.ts";
import { ruleName } from "../../i18n/scheduler.ts";
import { TIMELINE } from "../../i18n/workloads.ts";
import type { WorkloadDetail } from "../../model/rows.ts";
import { type Moment, timelineOf } from "../../model/timeline.ts";
import { DataTable } from "../../ui/DataTable.tsx";
import { Panel } from "../../ui/Panel.tsx";
import { QueryResult } from "../../ui/QueryResult.tsx";
import { usePages } from "../../ui/usePages.ts";
import styles from "./Workloads.module.css";

const REFETCH_MS = 10_000;

/** What happened to the workload, newest first. */
export function Timeline({ workload }: { workload: WorkloadDetail }) {
  const { namespace, name } = workload;
  const key = `${namespace}/${name}`;
  const events = useWorkloadEvents(`${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`);
  const evictions = usePages(
    ["evictions", "30d", "", { workload: key }],
    (cursor, signal) => listEvictions("30d", { workload: key }, cursor, signal),
    REFETCH_MS,
  );
  return (
    <Panel title={TIMELINE.title} note={TIMELINE.note} flush>
      <QueryResult query={events}>
        {({ items }) => (
          <DataTable name={TIMELINE.title} columns={TIMELINE.columns}>
            {timelineOf(workload, evictions.data ?? [], items).map((moment) => (
              <MomentRow key={JSON.stringify(moment)} moment={moment} />
            ))}
          </DataTable>
        )}
      </QueryResult>
    </Panel>
  );
}

function MomentRow({ moment }: { moment: Moment }) {
  const { what, about, text } = textsOf(moment);
  return (
    <tr>
      <td>
        <time dateTime={moment.at}>{dateTime(moment.at)}</time>
      </td>
      <th scope="row">{what}</th>
      <td>{about}</td>
      <td className={styles.message}>{text}</td>
    </tr>
  );
}

function textsOf(moment: Moment) {
  switch (moment.kind) {
    case "created":
      return { what: TIMELINE.created, about: TIMELINE.workload, text: "" };
    case "started":
      return { what: TIMELINE.started, about: TIMELINE.workload, text: "" };
    case "evicted": {
      const { rule, pods, text, session } = moment.eviction;
      return {
        what: TIMELINE.evicted(ruleName(rule)),
        about: TIMELINE.pods(pods),
        text: (
          <>
            {text} <Link to={`/scheduler/sessions/${session}`}>{TIMELINE.session(session)}</Link>
          </>
        ),
      };
    }
    default: {
      const { reason, about, text, count } = moment.event;
      return { what: reason, about, text: count > 1 ? `${text} (${TIMELINE.times(count)})` : text };
    }
  }
}

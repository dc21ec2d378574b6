import { Link, useParams } from "react-router";
import { useSingle } from "../../live/react.tsx";
import { useHues } from "../../live/useHues.ts";
import { useQueueLabels } from "../../live/useQueueLabels.ts";
import type { WorkloadDetail } from "../../model/rows.ts";
import { gpus } from "../../model/units.ts";
import { Elapsed } from "../../ui/Elapsed.tsx";
import { Page } from "../../ui/Page.tsx";
import { QueueMark } from "../../ui/QueueMark.tsx";
import { StateBadge } from "../../ui/StateBadge.tsx";
import { Empty, Failure, Loading } from "../../ui/States.tsx";
import { PodTable } from "./PodTable.tsx";
import { Why } from "./Why.tsx";
import styles from "./Workloads.module.css";

const TABS = [
  { key: "why", word: "Why" },
  { key: "pods", word: "Pods" },
] as const;

export function WorkloadPage() {
  const { namespace = "", name = "", tab = "why" } = useParams();
  const { row, loaded, problem } = useSingle<WorkloadDetail>(`workload:${namespace}/${name}`);
  const hues = useHues();
  const label = useQueueLabels();
  const path = `/workloads/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
  if (problem !== null && problem.status !== 404) {
    return <Failure title={problem.title} detail={problem.detail} />;
  }
  if (row === undefined) {
    return (
      <Page title={name}>
        {loaded || problem !== null ? (
          <Empty title="This workload does not exist (any more)">
            It may have been deleted. <Link to="/workloads">All workloads</Link>
          </Empty>
        ) : (
          <Loading />
        )}
      </Page>
    );
  }
  return (
    <Page title={row.owner || row.name} note={<StateBadge state={row.state} />}>
      <dl className={styles.facts}>
        <Fact word="Kind">
          {row.kind} in {row.namespace}
        </Fact>
        <Fact word="Queue">
          <Link className={styles.queue} to={`/queues?queue=${encodeURIComponent(row.queue)}`}>
            <QueueMark hue={hues.get(row.queue)} />
            {label(row.queue)}
          </Link>
        </Fact>
        <Fact word="Priority">
          {row.priorityClass || (row.priority ?? "–")},{" "}
          {row.preemptible ? "preemptible" : "non-preemptible"}
        </Fact>
        <Fact word="GPUs">
          {row.gpuKind === "none" ? "none" : `${gpus(row.gpu)} (${row.gpuKind})`}
        </Fact>
        <Fact word="Ready / minimum / pods">
          {row.ready} / {row.minMember} / {row.pods}
        </Fact>
        <Fact word="Age">
          <Elapsed since={row.createdAt} />
        </Fact>
        {row.startedAt !== null && (
          <Fact word="Started">
            <Elapsed since={row.startedAt} /> ago
          </Fact>
        )}
        <Fact word="Evictions">{row.evictions}</Fact>
        <Fact word="Pod group">{row.reason === "Unmanaged" ? "none" : row.name}</Fact>
      </dl>
      <nav className={styles.tabs} aria-label="Workload">
        {TABS.map(({ key, word }) => (
          <Link
            key={key}
            className={styles.tab}
            to={key === "why" ? path : `${path}/${key}`}
            aria-current={tab === key ? "page" : undefined}
          >
            {word}
          </Link>
        ))}
      </nav>
      {tab === "pods" ? <PodTable pods={row.podList} /> : <Why workload={row} />}
    </Page>
  );
}

function Fact({ word, children }: { word: string; children: React.ReactNode }) {
  return (
    <div>
      <dt>{word}</dt>
      <dd>{children}</dd>
    </div>
  );
}

import { Link } from "react-router";
import { SessionBars } from "../../charts/SessionBars.tsx";
import { useTopic } from "../../live/react.tsx";
import { useHues } from "../../live/useHues.ts";
import type { Cluster } from "../../model/rows.ts";
import { count, milliseconds, plural } from "../../model/units.ts";
import { GpuMap } from "../../ui/GpuMap.tsx";
import { Page } from "../../ui/Page.tsx";
import { Panel } from "../../ui/Panel.tsx";
import { Empty, Failure, Loading } from "../../ui/States.tsx";
import { GpuTile } from "./GpuTile.tsx";
import styles from "./Overview.module.css";
import { PendingReasons } from "./PendingReasons.tsx";
import { QueueBalance } from "./QueueBalance.tsx";

export function OverviewPage() {
  const { rows, loaded, problem } = useTopic("cluster");
  const cluster = rows.get("cluster");
  if (problem !== null) return <Failure title={problem.title} detail={problem.detail} />;
  if (cluster === undefined) {
    return (
      <Page title="Overview">
        {loaded ? (
          <Empty title="The cluster has not been seen yet">The mirror is still reading it.</Empty>
        ) : (
          <Loading />
        )}
      </Page>
    );
  }
  return (
    <Page title="Overview" note="Is the cluster healthy, full and fair?">
      <div className={styles.stats}>
        <GpuTile cluster={cluster} />
        <WorkloadTile cluster={cluster} />
        <NodeTile cluster={cluster} />
        <SessionTile cluster={cluster} />
      </div>
      <div className={styles.grid}>
        <div className={styles.column}>
          <ClusterMap />
          <LatestSessions />
        </div>
        <div className={styles.column}>
          <PendingReasons cluster={cluster} />
          <QueueBalance cluster={cluster} />
        </div>
      </div>
    </Page>
  );
}

function WorkloadTile({ cluster }: { cluster: Cluster }) {
  return (
    <Panel title="Workloads">
      <div className={styles.big}>
        {count(cluster.workloads.running)} <small>running</small>
      </div>
      <div className={styles.sub}>
        <Link to="/workloads?state=pending">{count(cluster.workloads.pending)} pending</Link>
      </div>
    </Panel>
  );
}

function NodeTile({ cluster }: { cluster: Cluster }) {
  const { total, ready, cordoned } = cluster.nodes;
  return (
    <Panel title="Nodes">
      <div className={styles.big}>
        {count(ready)} <small>of {count(total)} ready</small>
      </div>
      <div className={styles.sub}>
        {cordoned === 0 ? "none cordoned" : `${count(cordoned)} cordoned`}
      </div>
    </Panel>
  );
}

function SessionTile({ cluster }: { cluster: Cluster }) {
  const { lastDurationMs, p95Ms, perMinute } = cluster.sessions;
  return (
    <Panel title="Last session">
      <div className={styles.big}>
        {lastDurationMs === null ? "–" : milliseconds(lastDurationMs)}
      </div>
      <div className={styles.sub}>
        {plural(Math.round(perMinute), "session")}/min
        {p95Ms === null ? "" : ` · p95 ${milliseconds(p95Ms)}`}
      </div>
    </Panel>
  );
}

function ClusterMap() {
  const { rows, loaded } = useTopic("nodes");
  const hues = useHues();
  const nodes = [...rows.values()].sort((a, b) =>
    a.name.localeCompare(b.name, "en", { numeric: true }),
  );
  return (
    <Panel
      title="GPU map"
      note="one cell per device, coloured by queue"
      tools={<Link to="/nodes">All nodes</Link>}
    >
      {!loaded ? (
        <Loading rows={5} />
      ) : nodes.length === 0 ? (
        <Empty title="No nodes yet">Nodes with GPUs appear here as soon as they join.</Empty>
      ) : (
        <GpuMap nodes={nodes} hues={hues} />
      )}
    </Panel>
  );
}

function LatestSessions() {
  const { rows, loaded } = useTopic("sessions");
  const sessions = [...rows.values()].sort((a, b) => a.id - b.id).slice(-60);
  return (
    <Panel
      title="Scheduling sessions"
      note="time per action"
      tools={<Link to="/scheduler">All sessions</Link>}
    >
      {!loaded ? (
        <Loading rows={3} />
      ) : sessions.length === 0 ? (
        <Empty title="No session yet">
          The scheduler has not run since this database was made.
        </Empty>
      ) : (
        <SessionBars sessions={sessions} />
      )}
    </Panel>
  );
}

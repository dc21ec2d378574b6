import { Link } from "react-router";
import { SessionBars } from "../../charts/SessionBars.tsx";
import { useTopic } from "../../live/react.tsx";
import { useHues } from "../../live/useHues.ts";
import type { Cluster } from "../../model/rows.ts";
import { count, gpus, milliseconds, modelName } from "../../model/units.ts";
import { GpuMap } from "../../ui/GpuMap.tsx";
import { Page } from "../../ui/Page.tsx";
import { Panel } from "../../ui/Panel.tsx";
import { Empty, Failure, Loading } from "../../ui/States.tsx";
import { GpuTile } from "./GpuTile.tsx";
import styles from "./Overview.module.css";
import { PendingReasons } from "./PendingReasons.tsx";
import { QueueBalance } from "./QueueBalance.tsx";

const COLLATOR = new Intl.Collator("en", { numeric: true });

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
        <ModelTile cluster={cluster} />
        <NowTile cluster={cluster} />
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

/** The three other things to know at a glance. */
function NowTile({ cluster }: { cluster: Cluster }) {
  const { nodes, workloads, sessions } = cluster;
  return (
    <Panel title="Right now">
      <dl className={styles.now}>
        <dt>Workloads</dt>
        <dd>
          <b>{count(workloads.running)}</b> running
          <Link to="/workloads?state=pending">{count(workloads.pending)} pending</Link>
        </dd>
        <dt>Nodes</dt>
        <dd>
          <b>{count(nodes.ready)}</b> of {count(nodes.total)} ready
          <span>{count(nodes.cordoned)} cordoned</span>
        </dd>
        <dt>Session</dt>
        <dd>
          <b>{sessions.lastDurationMs === null ? "–" : milliseconds(sessions.lastDurationMs)}</b>{" "}
          last
          {sessions.p95Ms !== null && <span>p95 {milliseconds(sessions.p95Ms)}</span>}
        </dd>
        <dt>Pace</dt>
        <dd>
          <b>{count(Math.round(sessions.perMinute))}</b> sessions/min
        </dd>
      </dl>
    </Panel>
  );
}

function ModelTile({ cluster }: { cluster: Cluster }) {
  return (
    <Panel title="By model">
      {cluster.models.length === 0 ? (
        <Empty title="No GPU seen yet" />
      ) : (
        <ul className={styles.models}>
          {cluster.models.map(({ model, total, allocated }) => (
            <li key={model}>
              <span className={styles.model}>{modelName(model)}</span>
              <b>
                {gpus(allocated)} <small>of {gpus(total)}</small>
              </b>
              <span className={styles.rail} aria-hidden>
                <i style={{ width: `${(100 * allocated) / Math.max(total, 1)}%` }} />
              </span>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

function ClusterMap() {
  const { rows, loaded } = useTopic("nodes");
  const hues = useHues();
  const nodes = [...rows.values()].sort((a, b) => COLLATOR.compare(a.name, b.name));
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

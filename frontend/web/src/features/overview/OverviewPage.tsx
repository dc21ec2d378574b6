import { Link } from "react-router";
import { SessionBars } from "../../charts/SessionBars.tsx";
import { count, gpus, milliseconds, modelName } from "../../i18n/numbers.ts";
import { LATEST_SESSIONS, MODEL_TILE, NOW_TILE, OVERVIEW } from "../../i18n/overview.ts";
import { NONE } from "../../i18n/ui.ts";
import { useTopic } from "../../live/react.tsx";
import type { Cluster } from "../../model/rows.ts";
import { Page } from "../../ui/Page.tsx";
import { Panel } from "../../ui/Panel.tsx";
import { Empty, Failure, Loading } from "../../ui/States.tsx";
import { ClusterMap } from "./ClusterMap.tsx";
import { FirstSteps } from "./FirstSteps.tsx";
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
      <Page title={OVERVIEW.title}>
        {loaded ? <Empty title={OVERVIEW.emptyTitle}>{OVERVIEW.empty}</Empty> : <Loading />}
      </Page>
    );
  }
  return (
    <Page title={OVERVIEW.title} note={OVERVIEW.note}>
      <FirstSteps cluster={cluster} />
      <div className={styles.stats}>
        <GpuTile cluster={cluster} />
        <ModelTile cluster={cluster} />
        <NowTile cluster={cluster} />
      </div>
      <div className={styles.grid}>
        <div className={styles.column}>
          <ClusterMap cluster={cluster} />
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

/** The state of workloads, nodes and scheduling sessions at a glance. */
function NowTile({ cluster }: { cluster: Cluster }) {
  const { nodes, workloads, sessions } = cluster;
  return (
    <Panel title={NOW_TILE.title}>
      <dl className={styles.now}>
        <dt>{NOW_TILE.workloads}</dt>
        <dd>
          <b>{count(workloads.running)}</b> {NOW_TILE.running}
          <Link to="/workloads?state=pending">{NOW_TILE.pending(workloads.pending)}</Link>
        </dd>
        <dt>{NOW_TILE.nodes}</dt>
        <dd>
          <b>{count(nodes.ready)}</b> {NOW_TILE.ready(nodes.total)}
          <span>{NOW_TILE.cordoned(nodes.cordoned)}</span>
        </dd>
        <dt>{NOW_TILE.session}</dt>
        <dd>
          <b>{sessions.lastDurationMs === null ? NONE : milliseconds(sessions.lastDurationMs)}</b>{" "}
          {NOW_TILE.last}
          {sessions.p95Ms !== null && <span>{NOW_TILE.p95(sessions.p95Ms)}</span>}
        </dd>
        <dt>{NOW_TILE.rate}</dt>
        <dd>
          <b>{count(Math.round(sessions.perMinute))}</b> {NOW_TILE.perMinute}
        </dd>
      </dl>
    </Panel>
  );
}

function ModelTile({ cluster }: { cluster: Cluster }) {
  return (
    <Panel title={MODEL_TILE.title}>
      {cluster.models.length === 0 ? (
        <Empty title={MODEL_TILE.empty} />
      ) : (
        <ul className={styles.models}>
          {cluster.models.map(({ model, total, allocated }) => (
            <li key={model}>
              <span className={styles.model}>{modelName(model)}</span>
              <b>
                {gpus(allocated)} <small>{MODEL_TILE.ofTotal(total)}</small>
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

function LatestSessions() {
  const { rows, loaded } = useTopic("sessions");
  const sessions = [...rows.values()].sort((a, b) => a.id - b.id).slice(-60);
  return (
    <Panel
      title={LATEST_SESSIONS.title}
      note={LATEST_SESSIONS.note}
      tools={<Link to="/scheduler">{LATEST_SESSIONS.all}</Link>}
    >
      {!loaded ? (
        <Loading rows={3} />
      ) : sessions.length === 0 ? (
        <Empty title={LATEST_SESSIONS.emptyTitle}>{LATEST_SESSIONS.empty}</Empty>
      ) : (
        <SessionBars sessions={sessions} />
      )}
    </Panel>
  );
}

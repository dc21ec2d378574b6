import { Link, useParams } from "react-router";
import { ApiProblem } from "../../api/problem.ts";
import { useSession } from "../../api/scheduling.ts";
import { count, dateTime, gpus, milliseconds } from "../../i18n/numbers.ts";
import { SESSION } from "../../i18n/scheduler.ts";
import { actionName, NONE } from "../../i18n/ui.ts";
import type { Decision, SessionDetail } from "../../model/rows.ts";
import { DataTable } from "../../ui/DataTable.tsx";
import { Fact, FactList } from "../../ui/FactList.tsx";
import { NodeLink } from "../../ui/NodeLink.tsx";
import { Page } from "../../ui/Page.tsx";
import { Panel } from "../../ui/Panel.tsx";
import { QueryFailure } from "../../ui/QueryFailure.tsx";
import { QueueLink } from "../../ui/QueueLink.tsx";
import { RichText } from "../../ui/RichText.tsx";
import { Badge } from "../../ui/StateBadge.tsx";
import { Empty, Failure, Loading } from "../../ui/States.tsx";
import { WorkloadLink } from "../../ui/WorkloadLink.tsx";
import styles from "./Scheduler.module.css";

const TONES: Record<Decision["kind"], "good" | "accent" | "warn" | "bad"> = {
  bind: "good",
  nominate: "accent",
  move: "warn",
  evict: "bad",
};

/** One session: what each action did and how long it took, and what was decided about whom. */
export function SessionPage() {
  const { id = "" } = useParams();
  const { data: session, error, refetch } = useSession(id);
  const listLink = <Link to="/scheduler">{SESSION.all}</Link>;
  return (
    <Page title={SESSION.title(id)} note={listLink}>
      {session !== undefined ? (
        <Content session={session} />
      ) : error === null ? (
        <Loading rows={10} />
      ) : error instanceof ApiProblem && error.status === 404 ? (
        <Empty title={SESSION.missingTitle}>
          <RichText text={SESSION.missing} parts={{ link: listLink }} />
        </Empty>
      ) : (
        <QueryFailure error={error} onRetry={() => void refetch()} />
      )}
    </Page>
  );
}

function Content({ session }: { session: SessionDetail }) {
  const { decisions } = session;
  return (
    <>
      <FactList>
        <Fact name={SESSION.started}>{dateTime(session.startedAt)}</Fact>
        <Fact name={SESSION.duration}>{milliseconds(session.durationMs)}</Fact>
        <Fact name={SESSION.snapshot}>{milliseconds(session.snapshotMs)}</Fact>
        <Fact name={SESSION.commit}>{milliseconds(session.commitMs)}</Fact>
        <Fact name={SESSION.shard}>{session.shard}</Fact>
        <Fact name={SESSION.number}>{count(session.number)}</Fact>
        <Fact name={SESSION.pending}>{count(session.pendingBefore)}</Fact>
        <Fact name={SESSION.notPlaced}>{count(session.unschedulable)}</Fact>
        <Fact name={SESSION.cluster}>
          {SESSION.clusterText(session.nodes, session.queues, session.podGroups, session.pods)}
        </Fact>
      </FactList>
      {session.error !== "" && <Failure title={SESSION.failed} detail={session.error} />}
      <Panel title={SESSION.actions} note={SESSION.actionsNote} flush>
        <Actions session={session} />
      </Panel>
      <Panel
        title={SESSION.decisions}
        note={SESSION.decisionsNote(decisions.length, session.decided)}
        flush
      >
        {decisions.length === 0 ? (
          <Empty title={SESSION.nothing}>{SESSION.nothingText}</Empty>
        ) : (
          <DataTable
            name={SESSION.decisions}
            columns={SESSION.decisionColumns}
            numberColumns={[3, 4]}
          >
            {decisions.map((decision) => (
              <DecisionRow key={JSON.stringify(decision)} decision={decision} />
            ))}
          </DataTable>
        )}
      </Panel>
    </>
  );
}

function Actions({ session }: { session: SessionDetail }) {
  return (
    <DataTable name={SESSION.actions} columns={SESSION.actionColumns} numberColumns={[1, 3, 4]}>
      {session.actions.map(({ name, ms, attempted, succeeded }) => (
        <tr key={name}>
          <th scope="row">{actionName(name)}</th>
          <td>{milliseconds(ms)}</td>
          <td>
            <div className={styles.track} aria-hidden>
              <i
                className={styles.part}
                style={{ width: `${(100 * ms) / Math.max(session.durationMs, ms, 1)}%` }}
              />
            </div>
          </td>
          <td>{attempted === undefined ? NONE : count(attempted)}</td>
          <td>{succeeded === undefined ? NONE : count(succeeded)}</td>
        </tr>
      ))}
    </DataTable>
  );
}

function DecisionRow({ decision }: { decision: Decision }) {
  const { kind, action, workload, queue, pods, refused, nodes } = decision;
  return (
    <tr>
      <td>
        <Badge tone={TONES[kind]}>{SESSION.kinds[kind]}</Badge> {actionName(action)}
      </td>
      <th scope="row">
        <WorkloadLink workload={workload} />
      </th>
      <td>{queue === "" ? NONE : <QueueLink queue={queue} />}</td>
      <td>{count(pods + refused)}</td>
      <td>{gpus(decision.gpu)}</td>
      <td>
        {nodes.map((node, index) => (
          <span key={node}>
            {index > 0 && ", "}
            <NodeLink node={node} />
          </span>
        ))}
        {SESSION.more(nodes.length)}
      </td>
      <td className={styles.why}>
        <Reason decision={decision} />
        {refused > 0 && <div>{SESSION.refused(refused)}</div>}
      </td>
    </tr>
  );
}

function Reason({ decision: { kind, text, evictor } }: { decision: Decision }) {
  if (kind === "bind") return SESSION.allocated;
  if (kind === "nominate") return SESSION.nominated;
  if (kind === "move") return SESSION.moved;
  if (text !== "") return text;
  if (evictor === "") return NONE;
  return (
    <RichText
      text={SESSION.forWorkload}
      parts={{ workload: <WorkloadLink workload={evictor} /> }}
    />
  );
}

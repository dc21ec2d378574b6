import { Link, useNavigate, useParams } from "react-router";
import { ApiProblem } from "../../api/problem.ts";
import { useMe } from "../../api/useMe.ts";
import { CHANGE, CHANGE_NOTES, CHANGES } from "../../i18n/changes.ts";
import { dateTime } from "../../i18n/numbers.ts";
import { useTopic } from "../../live/react.tsx";
import { changeRights } from "../../model/changes.ts";
import type { Change } from "../../model/rows.ts";
import { Page } from "../../ui/Page.tsx";
import { RichText } from "../../ui/RichText.tsx";
import { Empty, Failure, Loading } from "../../ui/States.tsx";
import styles from "./Change.module.css";
import { ChangeBadge } from "./ChangeBadge.tsx";
import { EditList } from "./EditList.tsx";
import { Review } from "./Review.tsx";
import { StepList } from "./StepList.tsx";
import { useChange } from "./useChange.ts";

/** One change set: its edits, what they would do, and what can be done with it. */
export function ChangePage() {
  const { id = "" } = useParams();
  const view = useChange(Number(id));
  const me = useMe();
  const navigate = useNavigate();
  const { rows: queues } = useTopic("queues");
  const { change, loadError } = view;
  if (change === undefined) return <Unloaded id={id} error={loadError} />;
  const rights = changeRights(change, me, queues);
  const remove = async () => {
    await view.remove();
    await navigate("/changes");
  };
  const note = CHANGE_NOTES[change.state];
  return (
    <Page title={change.title} note={<ChangeBadge state={change.state} />}>
      <Facts change={change} />
      {note !== undefined && <p className={styles.note}>{note}</p>}
      {change.error !== null && <Failure title={CHANGE.failed} detail={change.error} />}
      <div className={styles.columns}>
        {change.steps.length > 0 ? (
          <StepList change={change} />
        ) : (
          <EditList
            change={change}
            onWrite={rights.edit && !view.isBusy ? view.write : undefined}
            onEmpty={remove}
          />
        )}
        <Review key={change.id} onDelete={remove} view={view} change={change} rights={rights} />
      </div>
    </Page>
  );
}

function Facts({ change }: { change: Change }) {
  const { author, createdAt, decidedBy, reverts } = change;
  return (
    <p className={styles.facts}>
      {CHANGE.number(change.id)} {CHANGE.facts(author, dateTime(createdAt))}
      {decidedBy !== null && ` · ${CHANGE.decidedBy(decidedBy)}`}
      {reverts !== null && (
        <>
          {" · "}
          <RichText
            text={CHANGE.undoes}
            parts={{ link: <Link to={`/changes/${reverts}`}>{CHANGE.number(reverts)}</Link> }}
          />
        </>
      )}
    </p>
  );
}

/** What stands for the page while the change set is loading, could not be loaded, or does not exist. */
function Unloaded({ id, error }: { id: string; error: Error | null }) {
  if (error === null) return <Loading />;
  if (!(error instanceof ApiProblem) || error.status !== 404) {
    return <Failure title={CHANGE.number(Number(id))} detail={error.message} />;
  }
  return (
    <Page title={CHANGES.title}>
      <Empty title={CHANGES.missingTitle}>
        <RichText
          text={CHANGES.missing}
          parts={{ link: <Link to="/changes">{CHANGES.all}</Link> }}
        />
      </Empty>
    </Page>
  );
}

import { Button } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { Link } from "react-router";
import { useMe } from "../../api/useMe.ts";
import { askUnblocks } from "../../api/workloads.ts";
import { useDraft } from "../../editing/useDraft.ts";
import { UNBLOCK } from "../../i18n/workloads.ts";
import { useTopic } from "../../live/react.tsx";
import { mayEdit } from "../../model/rights.ts";
import type { Unblock, WorkloadDetail } from "../../model/rows.ts";
import { draftEditsOf } from "../../model/unblocks.ts";
import { LockableButton } from "../../ui/LockableButton.tsx";
import { Panel } from "../../ui/Panel.tsx";
import { QueryFailure } from "../../ui/QueryFailure.tsx";
import { reportDone } from "../../ui/reportDone.tsx";
import styles from "./Workloads.module.css";

/** What would let a waiting workload start, as simulations show, and a way to do it. */
export function Unblockers({ workload }: { workload: WorkloadDetail }) {
  const me = useMe();
  const question = useMutation({ mutationFn: () => askUnblocks(workload) });
  const locked = me !== undefined && !me.rights.simulate ? UNBLOCK.forbidden : null;
  return (
    <Panel title={UNBLOCK.title} note={UNBLOCK.note}>
      {question.data === undefined && (
        <LockableButton
          text={question.isPending ? UNBLOCK.asking : UNBLOCK.ask}
          locked={question.isPending ? UNBLOCK.asking : locked}
          onClick={() => question.mutate()}
        />
      )}
      <div aria-live="polite">
        {question.data?.length === 0 && <p>{UNBLOCK.nothing}</p>}
        {question.data !== undefined && question.data.length > 0 && (
          <ul className={styles.unblocks}>
            {question.data.map((unblock) => (
              <Suggestion key={unblock.code} unblock={unblock} />
            ))}
          </ul>
        )}
      </div>
      {question.error !== null && (
        <QueryFailure error={question.error} onRetry={() => question.mutate()} />
      )}
    </Panel>
  );
}

function Suggestion({ unblock }: { unblock: Unblock }) {
  const me = useMe();
  const { rows: queues } = useTopic("queues");
  const { addAll, isAdding } = useDraft();
  const edits = draftEditsOf(unblock);
  const mayMake = edits.every(({ name }) => mayEdit(me, queues, name));
  const add = async () => {
    await addAll(edits);
    reportDone(UNBLOCK.added, UNBLOCK.addedText);
  };
  return (
    <li>
      <b>{unblock.text}</b>
      <p className={styles.sub}>{UNBLOCK.evicted(unblock.evictedWorkloads)}</p>
      <div className={styles.actions}>
        <Button component={Link} to={`/simulate/${unblock.simulation}`} size="xs" variant="default">
          {UNBLOCK.simulation}
        </Button>
        {edits.length > 0 && (
          <LockableButton
            text={UNBLOCK.add}
            locked={mayMake ? (isAdding ? UNBLOCK.adding : null) : UNBLOCK.notYours}
            onClick={() => void add()}
          />
        )}
      </div>
    </li>
  );
}

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "react-router";
import { awaitSimulation, listSimulations, simulate } from "../../api/simulate.ts";
import { useMe } from "../../api/useMe.ts";
import { PreviewPanel } from "../../editing/PreviewPanel.tsx";
import { useDraft } from "../../editing/useDraft.ts";
import { PREVIEW } from "../../i18n/preview.ts";
import { resultText, SIMULATE } from "../../i18n/simulate.ts";
import { useQueueLabels } from "../../live/useQueueLabels.ts";
import { entriesOfQuestion, START } from "../../model/question.ts";
import type { Preview, Question, ShareChange, Simulation } from "../../model/rows.ts";
import { DataTable } from "../../ui/DataTable.tsx";
import { Elapsed } from "../../ui/Elapsed.tsx";
import { Page } from "../../ui/Page.tsx";
import { Panel } from "../../ui/Panel.tsx";
import { Empty, Failure, Loading } from "../../ui/States.tsx";
import { QuestionForm } from "./QuestionForm.tsx";
import styles from "./Simulate.module.css";

const TIMEOUT_MS = 120_000;

/** Ask the scheduler "what if", and read the answer to this or an earlier question. */
export function SimulatePage() {
  const { id } = useParams();
  const me = useMe();
  const navigate = useNavigate();
  const queries = useQueryClient();
  const { edits } = useDraft();
  const key = (number: number) => ["simulation", number];
  const shown = useQuery({
    queryKey: key(Number(id)),
    queryFn: ({ signal }) => awaitSimulation(Number(id), signal),
    enabled: id !== undefined,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const run = useMutation({
    mutationFn: (question: Question) => simulate(question, AbortSignal.timeout(TIMEOUT_MS)),
    onSuccess: (simulation) => {
      queries.setQueryData(key(simulation.id), simulation);
      void queries.invalidateQueries({ queryKey: ["simulations"] });
      void navigate(`/simulate/${simulation.id}`);
    },
  });
  const error = run.error ?? shown.error;
  return (
    <Page title={SIMULATE.title} note={SIMULATE.note}>
      <div className={styles.columns}>
        <QuestionForm
          key={shown.data?.id ?? "new"}
          initial={shown.data === undefined ? START : entriesOfQuestion(shown.data.question)}
          edits={edits}
          locked={me !== undefined && !me.rights.simulate ? SIMULATE.forbidden : null}
          isRunning={run.isPending}
          onRun={run.mutate}
        />
        <Panel
          title={SIMULATE.answer}
          note={id === undefined ? undefined : SIMULATE.number(Number(id))}
        >
          {error !== null && <Failure title={SIMULATE.failed} detail={error.message} />}
          {run.isPending ? (
            <p role="status">{SIMULATE.running}</p>
          ) : (
            <Answer simulation={shown.data} isLoading={shown.isLoading} />
          )}
        </Panel>
      </div>
      <Earlier />
    </Page>
  );
}

function Answer({
  simulation,
  isLoading,
}: {
  simulation: Simulation | undefined;
  isLoading: boolean;
}) {
  if (isLoading) return <Loading />;
  if (simulation === undefined) return <p className={styles.hint}>{SIMULATE.nothing}</p>;
  const { answer, error } = simulation;
  if (answer === null) {
    return <Failure title={SIMULATE.failed} detail={error ?? PREVIEW.unknownError} />;
  }
  return (
    <>
      <PreviewPanel preview={answer} />
      <Shares answer={answer} />
    </>
  );
}

function Shares({ answer }: { answer: Preview }) {
  const label = useQueueLabels();
  const changed = answer.shares.filter(hasOtherGpus);
  if (changed.length === 0) return null;
  return (
    <>
      <h3>{SIMULATE.shares}</h3>
      <DataTable name={SIMULATE.shares} columns={SIMULATE.shareColumns} numberColumns={[1, 2]}>
        {changed.map(({ queue, before, after }) => (
          <tr key={queue}>
            <th scope="row">{label(queue)}</th>
            <td>{SIMULATE.change(before?.allocated.gpu ?? null, after?.allocated.gpu ?? null)}</td>
            <td>{SIMULATE.change(before?.share.gpu ?? null, after?.share.gpu ?? null)}</td>
          </tr>
        ))}
      </DataTable>
    </>
  );
}

function hasOtherGpus({ before, after }: ShareChange): boolean {
  return before?.allocated.gpu !== after?.allocated.gpu || before?.share.gpu !== after?.share.gpu;
}

function Earlier() {
  const { data } = useQuery({
    queryKey: ["simulations"],
    queryFn: ({ signal }) => listSimulations(signal),
  });
  return (
    <Panel title={SIMULATE.earlier} flush>
      {data === undefined ? (
        <Loading />
      ) : data.items.length === 0 ? (
        <Empty title={SIMULATE.none} />
      ) : (
        <DataTable name={SIMULATE.earlier} columns={SIMULATE.earlierColumns}>
          {data.items.map((summary) => (
            <tr key={summary.id}>
              <th scope="row">
                <Link to={`/simulate/${summary.id}`}>{SIMULATE.number(summary.id)}</Link>
              </th>
              <td>{summary.author}</td>
              <td>
                <Elapsed since={summary.createdAt} />
              </td>
              <td>{resultText(summary)}</td>
            </tr>
          ))}
        </DataTable>
      )}
    </Panel>
  );
}

import { Button, MultiSelect, Select, Switch, TextInput } from "@mantine/core";
import { useMemo, useState } from "react";
import { SIMULATE } from "../../i18n/simulate.ts";
import { useTopic } from "../../live/react.tsx";
import { useQueueLabels } from "../../live/useQueueLabels.ts";
import { useUnchanged } from "../../live/useUnchanged.ts";
import type { DraftEdit } from "../../model/draft.ts";
import { questionOf, type SimulatorEntries, type WorkloadEntry } from "../../model/question.ts";
import type { Question } from "../../model/rows.ts";
import { Panel } from "../../ui/Panel.tsx";
import styles from "./Simulate.module.css";

type Props = {
  initial: SimulatorEntries;
  /** The edits of the draft, which the question may include. */
  edits: readonly DraftEdit[];
  /** Why the user may not ask, or null. */
  locked: string | null;
  isRunning: boolean;
  onRun: (question: Question) => void;
};

/** What is asked: edits of queues, more workloads, more or fewer nodes. */
export function QuestionForm({ initial, edits, locked, isRunning, onRun }: Props) {
  const [entries, setEntries] = useState(initial);
  const [withDraft, setWithDraft] = useState(true);
  const { queues, nodes } = useNames();
  const question = questionOf(entries, withDraft ? edits : []);
  const change = (changes: Partial<SimulatorEntries>) => setEntries({ ...entries, ...changes });
  const addWorkload = () => {
    const key = Math.max(-1, ...entries.workloads.map((workload) => workload.key)) + 1;
    const added = { key, queue: "", pods: "1", gpu: "1", priorityClass: "" };
    change({ workloads: [...entries.workloads, added] });
  };
  return (
    <Panel title={SIMULATE.question}>
      <form
        aria-label={SIMULATE.question}
        onSubmit={(event) => {
          event.preventDefault();
          if (question !== null && locked === null && !isRunning) onRun(question);
        }}
      >
        {edits.length > 0 ? (
          <Switch
            label={SIMULATE.draft(edits.length)}
            checked={withDraft}
            onChange={(event) => setWithDraft(event.currentTarget.checked)}
            mb="sm"
          />
        ) : (
          <p className={styles.hint}>{SIMULATE.noDraft}</p>
        )}
        <h3>{SIMULATE.workloads}</h3>
        {entries.workloads.map((workload, index) => (
          <WorkloadFields
            key={workload.key}
            number={index + 1}
            entry={workload}
            queues={queues}
            onChange={(next) =>
              change({
                workloads: entries.workloads.map((each) => (each === workload ? next : each)),
              })
            }
            onRemove={() =>
              change({ workloads: entries.workloads.filter((each) => each !== workload) })
            }
          />
        ))}
        <Button size="compact-sm" variant="default" onClick={addWorkload}>
          {SIMULATE.addWorkload}
        </Button>
        <h3 className={styles.part}>{SIMULATE.nodes}</h3>
        <div className={styles.fields}>
          <TextInput
            label={SIMULATE.nodeCount}
            inputMode="numeric"
            value={entries.nodeCount}
            onChange={(event) => change({ nodeCount: event.currentTarget.value })}
          />
          <Select
            label={SIMULATE.nodeLike}
            placeholder={SIMULATE.noNode}
            data={nodes}
            value={entries.nodeLike || null}
            searchable
            clearable
            limit={100}
            clearButtonProps={{ "aria-label": SIMULATE.noNode }}
            onChange={(value) => change({ nodeLike: value ?? "" })}
          />
        </div>
        <MultiSelect
          label={SIMULATE.removedNodes}
          placeholder={entries.removedNodes.length === 0 ? SIMULATE.noNode : ""}
          data={nodes}
          value={[...entries.removedNodes]}
          searchable
          limit={100}
          onChange={(removedNodes) => change({ removedNodes })}
          mb="sm"
        />
        <TextInput
          label={SIMULATE.cycles}
          description={SIMULATE.cyclesHint}
          inputMode="numeric"
          value={entries.cycles}
          onChange={(event) => change({ cycles: event.currentTarget.value })}
          mb="sm"
        />
        {locked !== null ? (
          <p className={styles.hint}>{locked}</p>
        ) : (
          question === null && <p className={styles.hint}>{SIMULATE.nothingAsked}</p>
        )}
        <Button
          type="submit"
          loading={isRunning}
          disabled={question === null || locked !== null || isRunning}
        >
          {SIMULATE.run}
        </Button>
      </form>
    </Panel>
  );
}

type WorkloadProps = {
  number: number;
  entry: WorkloadEntry;
  queues: readonly { value: string; label: string }[];
  onChange: (entry: WorkloadEntry) => void;
  onRemove: () => void;
};

function WorkloadFields({ number, entry, queues, onChange, onRemove }: WorkloadProps) {
  return (
    <fieldset className={styles.workload}>
      <legend>{SIMULATE.workload(number)}</legend>
      <div className={styles.fields}>
        <Select
          label={SIMULATE.queue}
          data={queues}
          value={entry.queue || null}
          searchable
          limit={100}
          onChange={(value) => onChange({ ...entry, queue: value ?? "" })}
        />
        <TextInput
          label={SIMULATE.pods}
          inputMode="numeric"
          value={entry.pods}
          onChange={(event) => onChange({ ...entry, pods: event.currentTarget.value })}
        />
        <TextInput
          label={SIMULATE.gpu}
          inputMode="decimal"
          value={entry.gpu}
          onChange={(event) => onChange({ ...entry, gpu: event.currentTarget.value })}
        />
        <TextInput
          label={SIMULATE.priorityClass}
          placeholder={SIMULATE.defaultClass}
          value={entry.priorityClass}
          onChange={(event) => onChange({ ...entry, priorityClass: event.currentTarget.value })}
        />
      </div>
      <Button
        size="compact-xs"
        variant="subtle"
        aria-label={SIMULATE.removeWorkload(number)}
        onClick={onRemove}
      >
        {SIMULATE.remove}
      </Button>
    </fieldset>
  );
}

/** The queues that run workloads, and the nodes, as options; new only when a name changes. */
function useNames() {
  const { rows: queueRows } = useTopic("queues");
  const { rows: nodeRows } = useTopic("nodes");
  const label = useQueueLabels();
  const leaves = useMemo(
    () =>
      [...queueRows.values()]
        .filter(({ leaf }) => leaf)
        .map(({ name }) => ({ value: name, label: label(name) }))
        .sort((a, b) => a.label.localeCompare(b.label)),
    [queueRows, label],
  );
  const nodes = useMemo(() => [...nodeRows.keys()].sort(), [nodeRows]);
  return { queues: useUnchanged(leaves), nodes: useUnchanged(nodes) };
}

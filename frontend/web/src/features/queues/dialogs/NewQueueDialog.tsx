import { Select, TextInput } from "@mantine/core";
import { useMemo, useState } from "react";
import { createQueue } from "../../../api/client.ts";
import { messageAt, useVerdict } from "../../../editing/useVerdict.ts";
import { NEW_QUEUE } from "../../../i18n/queues.ts";
import type { NewQueue, QueuePatch } from "../../../model/rows.ts";
import {
  type Entries,
  entriesOf,
  type Pointer,
  patchOf,
  readEntries,
  type Values,
} from "../../../model/values.ts";
import { IN_DIALOG } from "../../../ui/Dialog.tsx";
import { BoundField } from "../form/BoundField.tsx";
import styles from "../form/QueueDrawer.module.css";
import { QueueDialog } from "./QueueDialog.tsx";

/** The values that the server gives a new queue that states none. */
export const DEFAULTS: Values = new Map<Pointer, number | "unlimited">([
  ["/quota/gpu", 0],
  ["/limit/gpu", "unlimited"],
  ["/weight/gpu", 1],
  ["/quota/cpuMilli", 0],
  ["/limit/cpuMilli", "unlimited"],
  ["/weight/cpuMilli", 1],
  ["/quota/memoryBytes", 0],
  ["/limit/memoryBytes", "unlimited"],
  ["/weight/memoryBytes", 1],
]);
const FIELDS: readonly Pointer[] = ["/displayName", "/quota/gpu", "/limit/gpu", "/weight/gpu"];
const TOP_LEVEL = "";

type Props = {
  /** Where the queue is placed at first, and the values it starts with. */
  parent: string | null;
  values: Values;
  /** The queues below which the user may place one; null stands for the top level. */
  places: readonly (string | null)[];
  /** Queues that the draft creates: a queue below one of them can only be drafted as well. */
  draftedPlaces: readonly string[];
  onCreated: (name: string) => void;
  onDrafted: () => void;
  onClose: () => void;
};

/** Creates a queue: its name, its place and its GPUs. The other fields are edited afterwards. */
export function NewQueueDialog({
  parent: initialParent,
  values,
  places,
  draftedPlaces,
  onCreated,
  onDrafted,
  onClose,
}: Props) {
  const [name, setName] = useState("");
  const [parent, setParent] = useState(initialParent ?? TOP_LEVEL);
  const [entries, setEntries] = useState<Entries>(() => entriesOf(values));
  const reading = useMemo(() => readEntries(entries), [entries]);
  const fields: QueuePatch = {
    ...patchOf(DEFAULTS, reading.values),
    ...(parent === TOP_LEVEL ? {} : { parent }),
  };
  const queue: NewQueue = { ...fields, name: name.trim() };
  const canWrite = !draftedPlaces.includes(parent);
  const isReady = queue.name !== "" && reading.errors.size === 0;
  const verdict = useVerdict(`POST ${JSON.stringify(queue)}`, isReady && canWrite, (signal) =>
    createQueue(queue, { dryRun: true, signal }),
  );
  return (
    <QueueDialog
      title={NEW_QUEUE.title}
      submitText={NEW_QUEUE.submit}
      isReady={isReady}
      verdict={verdict}
      fields={["/name", "/parent", ...FIELDS]}
      canWrite={canWrite}
      edit={{ name: queue.name, action: "create", edit: fields }}
      onDrafted={onDrafted}
      onSubmit={() => createQueue(queue, { dryRun: false })}
      onDone={() => onCreated(queue.name)}
      onClose={onClose}
    >
      <TextInput
        label={NEW_QUEUE.name}
        description={NEW_QUEUE.nameHint}
        data-autofocus
        required
        value={name}
        error={messageAt(verdict?.errors, "/name")}
        onChange={(event) => setName(event.currentTarget.value)}
        mb="sm"
      />
      <Select
        label={NEW_QUEUE.parent}
        data={placeChoices([...places, ...draftedPlaces])}
        value={parent}
        searchable
        allowDeselect={false}
        comboboxProps={IN_DIALOG}
        limit={100}
        error={messageAt(verdict?.errors, "/parent")}
        onChange={(value) => setParent(value ?? TOP_LEVEL)}
        mb="sm"
      />
      {FIELDS.map((pointer) => (
        <BoundField
          key={pointer}
          pointer={pointer}
          isLong
          entry={entries.get(pointer) ?? { kind: "unset", text: "" }}
          isChanged={false}
          problem={reading.errors.get(pointer)}
          error={messageAt(verdict?.errors, pointer)}
          warning={messageAt(verdict?.warnings, pointer)}
          disabled={false}
          onChange={(entry) => setEntries(new Map([...entries, [pointer, entry]]))}
        />
      ))}
      <p className={styles.note}>{canWrite ? NEW_QUEUE.note : NEW_QUEUE.draftOnly}</p>
    </QueueDialog>
  );
}

/** Return the options of a select for the parent; the empty value is the top level. */
export function placeChoices(places: readonly (string | null)[]) {
  return places.map((place) => ({
    value: place ?? TOP_LEVEL,
    label: place ?? NEW_QUEUE.topLevel,
  }));
}

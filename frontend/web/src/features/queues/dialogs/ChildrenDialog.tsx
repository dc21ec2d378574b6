import { Button, Group, TextInput } from "@mantine/core";
import { useState } from "react";
import { useDraft } from "../../../editing/useDraft.ts";
import { DRAFT } from "../../../i18n/changes.ts";
import { bound, gpus } from "../../../i18n/numbers.ts";
import { CHILDREN } from "../../../i18n/queues.ts";
import { NONE } from "../../../i18n/ui.ts";
import {
  CHILD_FIELDS,
  type ChildTable,
  childEdits,
  childTable,
  quotaSum,
  scaled,
  shared,
} from "../../../model/children.ts";
import type { Queue } from "../../../model/rows.ts";
import { DataTable } from "../../../ui/DataTable.tsx";
import { reportDone } from "../../../ui/reportDone.tsx";
import { WriteForm } from "../../../ui/WriteForm.tsx";

type Props = { queue: Queue; rows: readonly Queue[]; onClose: () => void };

/** The GPUs of all children of a queue in one table; what is changed goes to the draft. */
export function ChildrenDialog({ queue, rows: liveRows, onClose }: Props) {
  // The children as they were opened: what others change meanwhile is not an edit of this user.
  // Those that another manager (GitOps) writes are left out, because it would undo the edit.
  const [rows] = useState(() =>
    liveRows.filter(({ managedBy }) => managedBy === "").sort((a, b) => (a.name < b.name ? -1 : 1)),
  );
  const [table, setTable] = useState<ChildTable>(() => childTable(rows));
  const draft = useDraft();
  const edits = childEdits(rows, table);
  const parentQuota = queue.quota.gpu;
  const quotasOfChildren = quotaSum(table);
  const title = CHILDREN.title(queue.displayName || queue.name);
  const [, ...fieldTitles] = CHILDREN.columns;
  return (
    <WriteForm
      title={title}
      size="xl"
      submitText={CHILDREN.add(edits?.length ?? 0)}
      failureTitle={DRAFT.failed}
      isReady={edits !== null && edits.length > 0}
      onSubmit={() => draft.addAll(edits ?? [])}
      onDone={() => {
        reportDone(DRAFT.added, DRAFT.queues((edits ?? []).map(({ name }) => name)));
        onClose();
      }}
      onClose={onClose}
    >
      <p>
        {CHILDREN.text} {CHILDREN.hint}
      </p>
      <DataTable name={title} columns={CHILDREN.columns}>
        {rows.map(({ name, displayName }) => (
          <tr key={name}>
            <th scope="row">{displayName || name}</th>
            {CHILD_FIELDS.map((field, index) => (
              <td key={field}>
                <TextInput
                  size="xs"
                  aria-label={CHILDREN.cell(displayName || name, fieldTitles[index] ?? "")}
                  value={table.get(name)?.[field] ?? ""}
                  onChange={(event) => {
                    const before = table.get(name);
                    if (before === undefined) return;
                    const after = { ...before, [field]: event.currentTarget.value };
                    setTable(new Map([...table, [name, after]]));
                  }}
                />
              </td>
            ))}
          </tr>
        ))}
      </DataTable>
      <p role="status">
        {CHILDREN.sum(
          quotasOfChildren === null ? NONE : gpus(quotasOfChildren),
          bound("gpu", parentQuota),
        )}
      </p>
      {typeof parentQuota === "number" && (
        <Group gap="xs">
          <Button
            size="compact-sm"
            variant="default"
            onClick={() => setTable(scaled(table, parentQuota))}
          >
            {CHILDREN.scale}
          </Button>
          <Button
            size="compact-sm"
            variant="default"
            onClick={() => setTable(shared(table, parentQuota))}
          >
            {CHILDREN.even}
          </Button>
        </Group>
      )}
    </WriteForm>
  );
}

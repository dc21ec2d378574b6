import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { ApiProblem } from "../../../api/problem.ts";
import { SHARDS_KEY, type ShardWrite, writeShard } from "../../../api/shards.ts";
import { DiffTable } from "../../../editing/DiffTable.tsx";
import { UNDO } from "../../../i18n/changes.ts";
import { SHARD_REVIEW } from "../../../i18n/shards.ts";
import type { ShardWritten } from "../../../model/rows.ts";
import type { SpecPatch } from "../../../model/shards.ts";
import { reportDone, reportFailure } from "../../../ui/reportDone.tsx";
import { Failure } from "../../../ui/States.tsx";
import { WriteForm } from "../../../ui/WriteForm.tsx";
import { ReasonField } from "./ReasonField.tsx";

type Props = {
  write: ShardWrite;
  /** The spec as it is now, to undo the write; null if there is no object. */
  before: SpecPatch | null;
  onSaved: () => void;
  onClose: () => void;
};

/** Shows what a write would change in the cluster, asks why, and makes it. */
export function ReviewDialog({ write, before, onSaved, onClose }: Props) {
  const [reason, setReason] = useState("");
  const [wasMoved, setMoved] = useState(false);
  const queries = useQueryClient();
  const reload = () => queries.invalidateQueries({ queryKey: SHARDS_KEY });
  const dryRun = useQuery({
    queryKey: ["shard-dry-run", JSON.stringify(write)],
    queryFn: ({ signal }) => writeShard(write, { dryRun: true, signal }),
    placeholderData: keepPreviousData,
    retry: false,
    gcTime: 0,
  });
  const { data, error, isFetching } = dryRun;
  const isReady = data?.changed === true && error === null && !isFetching;
  const save = async () => {
    try {
      return await writeShard(write, { dryRun: false, reason });
    } catch (problem) {
      // With the present object the write names its version, and the table shows what it would change now.
      if (problem instanceof ApiProblem && problem.status === 412) {
        setMoved(true);
        await reload();
      }
      throw problem;
    }
  };
  const undo = async ({ shard }: ShardWritten) => {
    try {
      if (before === null) return;
      const { name, etag } = shard;
      await writeShard({ kind: "replace", name, spec: before, etag }, { dryRun: false });
      reportDone(SHARD_REVIEW.undone, SHARD_REVIEW.undoneText(name));
    } catch (problem) {
      if (!(problem instanceof ApiProblem)) throw problem;
      reportFailure(SHARD_REVIEW.undoFailed, problem.message);
    }
    await reload();
  };
  return (
    <WriteForm
      title={SHARD_REVIEW.title(write.name)}
      size="xl"
      submitText={SHARD_REVIEW.save}
      failureTitle={wasMoved ? SHARD_REVIEW.movedTitle : SHARD_REVIEW.refused}
      isReady={isReady}
      onSubmit={save}
      onDone={(result) => {
        reportDone(
          SHARD_REVIEW.saved,
          SHARD_REVIEW.savedText(write.name),
          before === null ? undefined : { text: UNDO.button, run: () => void undo(result) },
        );
        void reload();
        onSaved();
      }}
      onClose={onClose}
    >
      {data === undefined && error === null && <p role="status">{SHARD_REVIEW.asking}</p>}
      {error !== null && <Failure title={SHARD_REVIEW.refused} detail={messagesOf(error)} />}
      {wasMoved && <p>{SHARD_REVIEW.moved}</p>}
      {data !== undefined && error === null && (
        <>
          {data.changed ? (
            <DiffTable diff={data.diff} name={SHARD_REVIEW.diff} />
          ) : (
            <p>{SHARD_REVIEW.unchanged}</p>
          )}
          {data.warnings.map(({ message }) => (
            <p key={message}>
              <b>{SHARD_REVIEW.warnings}:</b> {message}
            </p>
          ))}
          <p>{SHARD_REVIEW.effect}</p>
        </>
      )}
      <ReasonField value={reason} onChange={setReason} />
    </WriteForm>
  );
}

function messagesOf(error: Error): string {
  const errors = error instanceof ApiProblem ? (error.body.errors ?? []) : [];
  return errors.length === 0 ? error.message : errors.map(({ message }) => message).join(" ");
}

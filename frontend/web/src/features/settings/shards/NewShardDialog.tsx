import { TextInput } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { SHARDS_KEY, writeShard } from "../../../api/shards.ts";
import { NEW_SHARD } from "../../../i18n/shards.ts";
import { reportDone } from "../../../ui/reportDone.tsx";
import { WriteForm } from "../../../ui/WriteForm.tsx";

type Props = { onCreated: (name: string) => void; onClose: () => void };

/** Creates a shard for the nodes of a pool; what its scheduler does is changed afterwards. */
export function NewShardDialog({ onCreated, onClose }: Props) {
  const [name, setName] = useState("");
  const [pool, setPool] = useState("");
  const queries = useQueryClient();
  const spec = { partitionLabelValue: pool.trim() };
  return (
    <WriteForm
      title={NEW_SHARD.title}
      submitText={NEW_SHARD.submit}
      isReady={name.trim() !== "" && pool.trim() !== ""}
      onSubmit={() => writeShard({ kind: "create", name: name.trim(), spec }, { dryRun: false })}
      onDone={async ({ shard }) => {
        reportDone(NEW_SHARD.created, NEW_SHARD.createdText(shard.name));
        await queries.invalidateQueries({ queryKey: SHARDS_KEY });
        onCreated(shard.name);
      }}
      onClose={onClose}
    >
      <p>{NEW_SHARD.text}</p>
      <TextInput
        label={NEW_SHARD.name}
        description={NEW_SHARD.nameHint}
        data-autofocus
        required
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        mb="sm"
      />
      <TextInput
        label={NEW_SHARD.pool}
        description={NEW_SHARD.poolHint}
        required
        value={pool}
        onChange={(event) => setPool(event.currentTarget.value)}
      />
    </WriteForm>
  );
}

import { TextInput } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useNavigate } from "react-router";
import { deleteShard, SHARDS_KEY } from "../../../api/shards.ts";
import { DELETE_SHARD } from "../../../i18n/shards.ts";
import type { Shard } from "../../../model/rows.ts";
import { reportDone } from "../../../ui/reportDone.tsx";
import { WriteForm } from "../../../ui/WriteForm.tsx";
import { ReasonField } from "./ReasonField.tsx";

type Props = { shard: Shard; isDefault: boolean; onClose: () => void };

/** Deletes a shard once its name has been typed: its scheduler ends with it. */
export function DeleteShardDialog({ shard: { name, etag }, isDefault, onClose }: Props) {
  const [typed, setTyped] = useState("");
  const [reason, setReason] = useState("");
  const queries = useQueryClient();
  const navigate = useNavigate();
  return (
    <WriteForm
      title={DELETE_SHARD.title(name)}
      submitText={DELETE_SHARD.submit}
      isDangerous
      isReady={typed === name}
      onSubmit={() => deleteShard(name, etag, reason)}
      onDone={() => {
        reportDone(DELETE_SHARD.deleted, name);
        onClose();
        void queries.invalidateQueries({ queryKey: SHARDS_KEY });
        void navigate("/settings/shards");
      }}
      onClose={onClose}
    >
      <p>{isDefault ? DELETE_SHARD.textDefault : DELETE_SHARD.text}</p>
      <TextInput
        label={DELETE_SHARD.typed(name)}
        data-autofocus
        autoComplete="off"
        value={typed}
        onChange={(event) => setTyped(event.currentTarget.value)}
        mb="sm"
      />
      <ReasonField value={reason} onChange={setReason} />
    </WriteForm>
  );
}

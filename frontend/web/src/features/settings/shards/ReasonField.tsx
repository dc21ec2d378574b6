import { TextInput } from "@mantine/core";
import { SHARD_REVIEW } from "../../../i18n/shards.ts";

type Props = { value: string; onChange: (reason: string) => void };

/** Why a shard is changed or deleted, for the audit log. */
export function ReasonField({ value, onChange }: Props) {
  return (
    <TextInput
      label={SHARD_REVIEW.reason}
      description={SHARD_REVIEW.reasonHint}
      maxLength={1000}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  );
}

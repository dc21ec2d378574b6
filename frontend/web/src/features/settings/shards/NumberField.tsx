import { TextInput } from "@mantine/core";
import { useState } from "react";
import { SHARD } from "../../../i18n/shards.ts";

type Props = {
  label: string;
  description?: string;
  isLabelHidden?: boolean;
  value: number;
  /** The value of the edit, if there is one. */
  edited: unknown;
  disabled: boolean;
  onChange: (value: number) => void;
};

/** A number as a text; what is no number is said at the field, and is no edit. */
export function NumberField(props: Props) {
  const { label, description, isLabelHidden = false, value, edited, disabled, onChange } = props;
  const [typed, setTyped] = useState<string | null>(null);
  const isNumber = (text: string) => text.trim() !== "" && Number.isFinite(Number(text));
  return (
    <TextInput
      size="xs"
      inputMode="decimal"
      {...(isLabelHidden ? { "aria-label": label } : { label, description })}
      disabled={disabled}
      value={typed ?? String(edited ?? value)}
      error={typed !== null && !isNumber(typed) ? SHARD.invalid : undefined}
      onChange={(event) => {
        const text = event.currentTarget.value;
        setTyped(text);
        if (isNumber(text)) onChange(Number(text));
      }}
      // A valid text is then shown as the number it means, and discarding the edits changes it.
      onBlur={() => setTyped((text) => (text !== null && isNumber(text) ? null : text))}
    />
  );
}

import { Select } from "@mantine/core";
import { SETTINGS } from "../../i18n/settings.ts";
import { useTopic } from "../../live/react.tsx";
import { IN_DIALOG } from "../../ui/Dialog.tsx";

type Props = { label: string; value: string | null; onChange: (queue: string | null) => void };

/** The queue that a right is limited to; none stands for the whole cluster. */
export function SubtreeSelect({ label, value, onChange }: Props) {
  const { rows: queues } = useTopic("queues");
  return (
    <Select
      label={label}
      placeholder={SETTINGS.whole}
      data={[...queues.keys()].sort()}
      value={value}
      clearable
      searchable
      limit={100}
      clearButtonProps={{ "aria-label": SETTINGS.whole }}
      comboboxProps={IN_DIALOG}
      onChange={onChange}
      mb="sm"
    />
  );
}

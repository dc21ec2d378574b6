import { SegmentedControl, TextInput } from "@mantine/core";
import { type Entry, fieldName, type Pointer, splitPointer } from "../../model/editing.ts";
import { UNIT } from "../../model/units.ts";
import styles from "./QueueDrawer.module.css";

type Props = {
  pointer: Pointer;
  entry: Entry;
  isChanged: boolean;
  error: string | undefined;
  warning: string | undefined;
  disabled: boolean;
  onChange: (entry: Entry) => void;
};

const CHOICES = [
  { value: "value", label: "Value" },
  { value: "unlimited", label: "Unlimited" },
  { value: "unset", label: "Unset" },
];

/** One editable field. For quota and limit, a number, unlimited and unset are three distinct choices. */
export function BoundField({
  pointer,
  entry,
  isChanged,
  error,
  warning,
  disabled,
  onChange,
}: Props) {
  const at = splitPointer(pointer);
  const isBound = at !== null && at.part !== "weight";
  const name = fieldName(pointer);
  const short =
    at === null ? name : at.part === "weight" ? "Weight" : at.part === "quota" ? "Quota" : "Limit";
  const unit = at === null || at.part === "weight" ? "" : UNIT[at.resource];
  return (
    <div className={`${styles.field} ${isChanged ? styles.draft : ""}`}>
      <span className={styles.label} aria-hidden>
        {short}
      </span>
      {isBound ? (
        <SegmentedControl
          size="xs"
          aria-label={`${name}: kind`}
          data={CHOICES}
          value={entry.kind}
          disabled={disabled}
          onChange={(kind) => onChange({ ...entry, kind: kind as Entry["kind"] })}
        />
      ) : (
        <span />
      )}
      <TextInput
        aria-label={name}
        inputMode="decimal"
        size="xs"
        value={entry.kind === "value" ? entry.text : ""}
        placeholder={entry.kind}
        disabled={disabled || (isBound && entry.kind !== "value")}
        error={error}
        rightSection={unit === "" ? null : <span className={styles.unit}>{unit}</span>}
        rightSectionWidth={unit === "" ? 0 : 48}
        onChange={(event) => onChange({ kind: "value", text: event.currentTarget.value })}
      />
      {warning !== undefined && <p className={styles.warning}>{warning}</p>}
    </div>
  );
}

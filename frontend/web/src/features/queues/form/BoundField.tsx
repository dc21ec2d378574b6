import { SegmentedControl, Switch, TextInput } from "@mantine/core";
import {
  entryMeaning,
  entryProblemText,
  FORM,
  fieldHint,
  fieldName,
  fieldUnit,
  shortFieldName,
} from "../../../i18n/queues.ts";
import {
  type Entry,
  type EntryProblem,
  type Pointer,
  splitPointer,
  textField,
  YES,
} from "../../../model/values.ts";
import styles from "./QueueDrawer.module.css";

type Props = {
  pointer: Pointer;
  entry: Entry;
  isChanged: boolean;
  /** Why the text cannot be read. */
  problem: EntryProblem | undefined;
  /** Why the server would reject the value. */
  error: string | undefined;
  warning: string | undefined;
  disabled: boolean;
  /** Whether the label names the resource too, where no heading does. */
  isLong?: boolean;
  onChange: (entry: Entry) => void;
};

const CHOICES: { value: Entry["kind"]; label: string }[] = [
  { value: "value", label: FORM.choices.value },
  { value: "unlimited", label: FORM.choices.unlimited },
  { value: "unset", label: FORM.choices.unset },
];

/** One editable field. A quota or limit is a number, unlimited or unset: three distinct choices. */
export function BoundField(props: Props) {
  const { pointer, entry, isChanged, problem, warning, disabled, onChange } = props;
  const isText = textField(pointer) !== null;
  const isLong = props.isLong === true;
  const boundPointer = splitPointer(pointer);
  const isBound = boundPointer !== null && boundPointer.part !== "weight";
  const name = fieldName(pointer);
  const unit = fieldUnit(pointer);
  const meaning = entryMeaning(pointer, entry);
  const error = problem === undefined ? props.error : entryProblemText(problem, entry.text);
  if (pointer === "/userFairness") {
    return (
      <div className={[styles.field, styles.single, isChanged ? styles.draft : ""].join(" ")}>
        <Switch
          size="xs"
          label={name}
          checked={entry.text === YES}
          disabled={disabled}
          error={error}
          onChange={({ currentTarget: { checked } }) =>
            onChange(checked ? { kind: "value", text: YES } : { kind: "unset", text: "" })
          }
        />
      </div>
    );
  }
  return (
    <div
      className={[
        styles.field,
        isText ? styles.text : "",
        isLong ? styles.long : "",
        isChanged ? styles.draft : "",
      ].join(" ")}
    >
      <span className={styles.label} aria-hidden>
        {isLong ? name : shortFieldName(pointer)}
      </span>
      {isBound ? (
        <SegmentedControl
          size="xs"
          aria-label={FORM.kind(name)}
          data={CHOICES}
          value={entry.kind}
          disabled={disabled}
          onChange={(kind) => onChange({ ...entry, kind })}
        />
      ) : (
        !isText && <span />
      )}
      <TextInput
        className={styles.input ?? ""}
        aria-label={name}
        inputMode={isText ? "text" : "decimal"}
        size="xs"
        value={entry.kind === "value" ? entry.text : ""}
        placeholder={placeholder(pointer, entry)}
        disabled={disabled || (isBound && entry.kind !== "value")}
        error={error}
        rightSection={unit === "" ? null : <span className={styles.unit}>{unit}</span>}
        rightSectionWidth={unit === "" ? 0 : 48}
        onChange={(event) => onChange({ kind: "value", text: event.currentTarget.value })}
      />
      {meaning !== "" && (
        <p className={styles.meaning} role="status">
          {meaning}
        </p>
      )}
      {warning !== undefined && <p className={styles.warning}>{warning}</p>}
    </div>
  );
}

function placeholder(pointer: Pointer, entry: Entry): string {
  const hint = fieldHint(pointer);
  if (hint !== "") return hint;
  return entry.kind === "value" ? "" : FORM.choices[entry.kind].toLowerCase();
}

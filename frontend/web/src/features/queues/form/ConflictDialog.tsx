import { SegmentedControl } from "@mantine/core";
import { useState } from "react";
import { CONFLICT, fieldName, valueText } from "../../../i18n/queues.ts";
import type { Conflict } from "../../../model/editing.ts";
import { mergeValues, type Pointer, type Value, type Values } from "../../../model/values.ts";
import { ColumnHeads } from "../../../ui/ColumnHeads.tsx";
import { Dialog } from "../../../ui/Dialog.tsx";
import { DialogButtons } from "../../../ui/DialogButtons.tsx";
import styles from "./QueueDrawer.module.css";

type Props = { conflict: Conflict; onResolve: (chosen: Values) => void; onClose: () => void };
type Side = "mine" | "theirs";

const SIDES: { value: Side; label: string }[] = [
  { value: "theirs", label: CONFLICT.theirs },
  { value: "mine", label: CONFLICT.mine },
];
const HEADS = [CONFLICT.field, CONFLICT.before, CONFLICT.theirs, CONFLICT.mine, CONFLICT.keep];

/** Shows the fields that two people changed: before, theirs and mine, with a choice for each. */
export function ConflictDialog({ conflict, onResolve, onClose }: Props) {
  const [sides, setSides] = useState<ReadonlyMap<Pointer, Side>>(new Map());
  const { base, theirs, mine, pointers } = conflict;
  const side = (pointer: Pointer): Side => sides.get(pointer) ?? "theirs";
  const resolve = () => {
    const { merged } = mergeValues(base, theirs, mine);
    const chosen = pointers.map((pointer): [Pointer, Value] => [
      pointer,
      (side(pointer) === "mine" ? mine : theirs).get(pointer),
    ]);
    onResolve(new Map([...merged, ...chosen]));
  };
  return (
    <Dialog title={CONFLICT.title} onClose={onClose}>
      <p>{CONFLICT.text}</p>
      <table className={styles.merge}>
        <ColumnHeads labels={HEADS} />
        <tbody>
          {pointers.map((pointer) => (
            <tr key={pointer}>
              <th scope="row">{fieldName(pointer)}</th>
              <td>{valueText(pointer, base.get(pointer))}</td>
              <td>{valueText(pointer, theirs.get(pointer))}</td>
              <td>{valueText(pointer, mine.get(pointer))}</td>
              <td>
                <SegmentedControl
                  size="xs"
                  aria-label={CONFLICT.keepFor(fieldName(pointer))}
                  data={SIDES}
                  value={side(pointer)}
                  onChange={(value) => setSides(new Map([...sides, [pointer, value]]))}
                />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <DialogButtons
        cancelText={CONFLICT.keepEditing}
        confirmText={CONFLICT.save}
        isDangerous={false}
        onCancel={onClose}
        onConfirm={resolve}
      />
    </Dialog>
  );
}

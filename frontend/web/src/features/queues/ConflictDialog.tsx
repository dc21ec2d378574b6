import { Button, Group, Modal, SegmentedControl } from "@mantine/core";
import { useState } from "react";
import {
  fieldName,
  mergeValues,
  type Pointer,
  splitPointer,
  type Value,
  type Values,
  valueWords,
} from "../../model/editing.ts";
import { UNIT } from "../../model/units.ts";
import styles from "./QueueDrawer.module.css";
import type { Conflict } from "./useQueueEditor.ts";

type Props = { conflict: Conflict; onResolve: (chosen: Values) => void; onClose: () => void };
type Side = "mine" | "theirs";

/** Two people changed the same field: show what it was, theirs and mine, and let one of them win. */
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
    <Modal
      opened
      onClose={onClose}
      size="lg"
      title={<b>Someone else changed this queue</b>}
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <p>
        These fields were changed by both of you. Choose which value to keep; your other changes and
        theirs are kept as they are.
      </p>
      <table className={styles.merge}>
        <thead>
          <tr>
            <th scope="col">Field</th>
            <th scope="col">It was</th>
            <th scope="col">Theirs</th>
            <th scope="col">Mine</th>
            <th scope="col">Keep</th>
          </tr>
        </thead>
        <tbody>
          {pointers.map((pointer) => (
            <tr key={pointer}>
              <th scope="row">{fieldName(pointer)}</th>
              <td>{withUnit(pointer, base.get(pointer))}</td>
              <td>{withUnit(pointer, theirs.get(pointer))}</td>
              <td>{withUnit(pointer, mine.get(pointer))}</td>
              <td>
                <SegmentedControl
                  size="xs"
                  aria-label={`Keep for ${fieldName(pointer)}`}
                  data={[
                    { value: "theirs", label: "Theirs" },
                    { value: "mine", label: "Mine" },
                  ]}
                  value={side(pointer)}
                  onChange={(value) => setSides(new Map([...sides, [pointer, value as Side]]))}
                />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose}>
          Go on editing
        </Button>
        <Button onClick={resolve}>Save the merged queue</Button>
      </Group>
    </Modal>
  );
}

function withUnit(pointer: Pointer, value: Value): string {
  const at = splitPointer(pointer);
  const words = valueWords(pointer, value);
  return typeof value === "number" && at !== null && at.part !== "weight"
    ? `${words} ${UNIT[at.resource]}`
    : words;
}

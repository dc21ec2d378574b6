import { Kbd, Modal } from "@mantine/core";
import styles from "./LivePill.module.css";

const KEYS: readonly (readonly [keys: readonly string[], meaning: string])[] = [
  [["g", "o"], "Overview"],
  [["g", "q"], "Queues"],
  [["g", "w"], "Workloads"],
  [["g", "n"], "Nodes"],
  [["g", "s"], "Scheduler"],
  [["/"], "Search on this page"],
  [["p"], "Pause or resume live updates"],
  [["↑", "↓"], "Move in tables and grids"],
  [["←", "→"], "Fold or unfold a queue, move between GPUs"],
  [["Enter"], "Open what has the focus"],
  [["e"], "Edit the queue that has the focus"],
  [["Esc"], "Close"],
];

export function ShortcutHelp({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      title="Keyboard"
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <dl className={styles.card}>
        {KEYS.map(([keys, meaning]) => (
          <div key={meaning} style={{ display: "contents" }}>
            <dt>
              {keys.map((key) => (
                <Kbd key={key} mr={4}>
                  {key}
                </Kbd>
              ))}
            </dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
    </Modal>
  );
}

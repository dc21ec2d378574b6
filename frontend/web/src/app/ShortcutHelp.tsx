import { Kbd } from "@mantine/core";
import { KEYBOARD, PAGES } from "../i18n/app.ts";
import { Dialog } from "../ui/Dialog.tsx";
import styles from "./LivePill.module.css";

const KEYS: readonly (readonly [keys: readonly string[], meaning: string])[] = [
  [["g", "o"], PAGES.overview],
  [["g", "q"], PAGES.queues],
  [["g", "w"], PAGES.workloads],
  [["g", "n"], PAGES.nodes],
  [["g", "s"], PAGES.scheduler],
  [["g", "c"], PAGES.changes],
  [["g", "u"], PAGES.usage],
  [["Ctrl", "k"], KEYBOARD.palette],
  [["/"], KEYBOARD.search],
  [["p"], KEYBOARD.pause],
  [["↑", "↓"], KEYBOARD.move],
  [["←", "→"], KEYBOARD.moveSideways],
  [["Enter"], KEYBOARD.open],
  [["e"], KEYBOARD.edit],
  [["m"], KEYBOARD.moveQueue],
  [["x"], KEYBOARD.cut],
  [["v"], KEYBOARD.paste],
  [["F2"], KEYBOARD.inline],
  [["z"], KEYBOARD.undo],
  [["Esc"], KEYBOARD.close],
];

export function ShortcutHelp({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  return (
    <Dialog title={KEYBOARD.title} size="md" opened={opened} onClose={onClose}>
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
    </Dialog>
  );
}

import { SegmentedControl } from "@mantine/core";
import { type KeyboardEvent, useMemo, useRef, useState } from "react";
import { useNavigate } from "react-router";
import { amount, UNIT } from "../../../i18n/numbers.ts";
import { ICICLE } from "../../../i18n/queues.ts";
import { useQueueLabels } from "../../../live/useQueueLabels.ts";
import { besideSlice, type Slice, slicesOf } from "../../../model/icicle.ts";
import type { Queue, Resource } from "../../../model/rows.ts";
import type { QueueTree } from "../../../model/tree.ts";
import { queuePath } from "../../../ui/paths.ts";
import { Empty } from "../../../ui/States.tsx";
import styles from "./Views.module.css";

type By = "allocated" | "quota";
type Props = { queues: ReadonlyMap<string, Queue>; tree: QueueTree; resource: Resource };

/** All levels together are about this high, each within these bounds. */
const TREE_PX = 440;
const ROW_PX = { least: 58, most: 120 };
/** Below this part of the width a slice has no room for its name. */
const NAMED = 0.045;
/** How far from its share a queue may be and still count as fair. */
const NEAR = 0.1;
const BYS: { value: By; label: string }[] = [
  { value: "allocated", label: ICICLE.allocated },
  { value: "quota", label: ICICLE.quota },
];

/** Where the resource sits in the organisation: width is the amount, the colour whether it is more than the share. */
export function IcicleView({ queues, tree, resource }: Props) {
  const [by, setBy] = useState<By>("allocated");
  const [active, setActive] = useState<string | null>(null);
  const box = useRef<HTMLDivElement>(null);
  const navigate = useNavigate();
  const label = useQueueLabels();
  // Not again for each step of the focus from slice to slice.
  const slices = useMemo(
    () => slicesOf(tree, (name) => amountOf(queues.get(name), by, resource)),
    [tree, queues, by, resource],
  );
  const depth = Math.max(0, ...slices.map((slice) => slice.depth + 1));
  const rowPx = Math.min(ROW_PX.most, Math.max(ROW_PX.least, TREE_PX / depth));
  const home = slices.find(({ name }) => name === active) ?? slices[0];
  const open = (name: string) => void navigate(queuePath(name));
  const onKeyDown = (event: KeyboardEvent, slice: Slice) => {
    const next = besideSlice(slices, slice, event.key);
    if (next !== null) {
      event.preventDefault();
      setActive(next.name);
      box.current?.querySelector<HTMLElement>(`[data-slice="${CSS.escape(next.name)}"]`)?.focus();
    }
  };
  return (
    <div className={styles.scroll}>
      <div className={styles.tools}>
        <SegmentedControl
          size="xs"
          aria-label={ICICLE.by}
          data={BYS}
          value={by}
          onChange={(value) => setBy(value as By)}
        />
        <ul className={styles.legend}>
          {(["below", "near", "above"] as const).map((tone) => (
            <li key={tone}>
              <span className={`${styles.swatch} ${styles[tone]}`} aria-hidden>
                {ICICLE.marks[tone]}
              </span>{" "}
              {ICICLE.tones[tone]}
            </li>
          ))}
        </ul>
      </div>
      {slices.length === 0 ? (
        <Empty title={ICICLE.emptyTitle}>{ICICLE.empty}</Empty>
      ) : (
        <div
          ref={box}
          className={styles.icicle}
          style={{ height: depth * rowPx }}
          role="group"
          aria-label={ICICLE.name}
        >
          {slices.map((slice) => {
            const queue = queues.get(slice.name);
            const tone = toneOf(queue, resource);
            const value = amountOf(queue, by, resource);
            const text = ICICLE.slice(
              label(slice.name),
              amount(resource, value),
              UNIT[resource],
              ICICLE.tones[tone],
            );
            return (
              <button
                key={slice.name}
                type="button"
                data-slice={slice.name}
                tabIndex={slice.name === home?.name ? 0 : -1}
                className={`${styles.slice} ${styles[tone]}`}
                style={{
                  top: slice.depth * rowPx,
                  height: rowPx,
                  left: `${100 * slice.left}%`,
                  width: `${100 * slice.width}%`,
                }}
                aria-label={text}
                title={text}
                onFocus={() => setActive(slice.name)}
                onKeyDown={(event) => onKeyDown(event, slice)}
                onClick={() => open(slice.name)}
              >
                {slice.width >= NAMED && (
                  <>
                    <b>{label(slice.name)}</b>
                    <span>
                      {amount(resource, value)} <i aria-hidden>{ICICLE.marks[tone]}</i>
                    </span>
                  </>
                )}
              </button>
            );
          })}
        </div>
      )}
    </div>
  );
}

function amountOf(queue: Queue | undefined, by: By, resource: Resource): number {
  if (queue === undefined) return 0;
  if (by === "allocated") return queue.allocated[resource];
  const quota = queue.quota[resource];
  return typeof quota === "number" ? quota : 0;
}

function toneOf(queue: Queue | undefined, resource: Resource): "below" | "near" | "above" {
  const share = queue?.share?.[resource] ?? 0;
  const allocated = queue?.allocated[resource] ?? 0;
  if (allocated > share * (1 + NEAR)) return "above";
  return allocated < share * (1 - NEAR) ? "below" : "near";
}

import { IconAlertTriangle, IconChevronRight, IconLock, IconPencil } from "@tabler/icons-react";
import { type HTMLProps, memo } from "react";
import { Sparkline } from "../../../charts/Sparkline.tsx";
import { DRAFT, EDIT_ACTIONS_IN_DRAFT } from "../../../i18n/changes.ts";
import { amount, count } from "../../../i18n/numbers.ts";
import { cellText, FORM, QUEUES } from "../../../i18n/queues.ts";
import { NONE } from "../../../i18n/ui.ts";
import type { DraftEdit } from "../../../model/draft.ts";
import type { Hue } from "../../../model/hues.ts";
import { draftedValue, inlinePointers, valueIn } from "../../../model/inline.ts";
import type { Queue, Resource } from "../../../model/rows.ts";
import type { Series } from "../../../model/series.ts";
import type { Pointer } from "../../../model/values.ts";
import { BulletBar, bulletOf } from "../../../ui/BulletBar.tsx";
import { QueueMark } from "../../../ui/QueueMark.tsx";
import { TEMPLATE } from "./columns.ts";
import { type Inline, InlineCell } from "./InlineCell.tsx";
import styles from "./QueueTree.module.css";

export type QueueRowProps = {
  queue: Queue;
  resource: Resource;
  hue: Hue | undefined;
  level: number;
  isFolder: boolean;
  isOpen: boolean;
  isSelected: boolean;
  /** Whether it waits to be pasted below another queue. */
  isCut: boolean;
  /** What the draft changes about it. */
  drafted: DraftEdit | undefined;
  /** The amount at the right end of the bars of this queue and its siblings. */
  reach: number;
  /** Its allocated GPUs of the last hour, once they are loaded. */
  trend: Series | undefined;
  start: number;
  rowProps: HTMLProps<HTMLDivElement>;
  /** How cells are edited in their place; without it they cannot be. */
  inline: Inline | undefined;
  /** The field whose cell is being edited. */
  editing: Pointer | null;
  onToggle: () => void;
  onEdit: (name: string) => void;
};

/** One line of the treegrid. */
export const QueueRow = memo(function QueueRow(props: QueueRowProps) {
  const { queue, resource, level, isSelected, drafted, rowProps, onEdit } = props;
  const classes = [styles.row, level === 1 ? styles.root : "", isSelected ? styles.selected : ""];
  if (props.isCut) classes.push(styles.cut);
  if (drafted?.action === "delete") classes.push(styles.deleted);
  if (queue.orphan || queue.problems.length > 0) classes.push(styles.invalid);
  const share = queue.share === null ? NONE : amount(resource, queue.share[resource]);
  return (
    <div
      {...rowProps}
      className={classes.join(" ")}
      style={{
        gridTemplateColumns: TEMPLATE,
        position: "absolute",
        insetInline: 0,
        transform: `translateY(${props.start}px)`,
      }}
    >
      <NameCell {...props} />
      {inlinePointers(resource).map((pointer) => (
        <ValueCell key={pointer} {...props} pointer={pointer} />
      ))}
      <NumberCell text={share} />
      <NumberCell text={amount(resource, queue.allocated[resource])} />
      <div role="gridcell">
        <BulletBar bullet={bulletOf(queue, resource)} max={props.reach} />
      </div>
      <div role="gridcell">
        {props.trend !== undefined && <Sparkline name={queue.name} values={props.trend} />}
      </div>
      <NumberCell text={count(queue.pendingWorkloads)} />
      <div role="gridcell">
        <button
          type="button"
          className={styles.edit}
          tabIndex={-1}
          aria-label={QUEUES.edit(queue.name)}
          onClick={(event) => {
            event.stopPropagation();
            onEdit(queue.name);
          }}
        >
          <IconPencil size={16} />
        </button>
      </div>
    </div>
  );
}, isSameRow);

function NameCell({ queue, hue, level, isFolder, isOpen, drafted, onToggle }: QueueRowProps) {
  const problem = queue.problems[0] ?? (queue.orphan ? QUEUES.parentMissing(queue.parent) : null);
  return (
    <div role="rowheader" className={styles.name} style={{ paddingInlineStart: (level - 1) * 20 }}>
      {isFolder ? (
        // For the mouse only: assistive technology collapses and expands the row itself.
        <span
          className={`${styles.chevron} ${isOpen ? styles.open : ""}`}
          aria-hidden
          onClick={(event) => {
            event.stopPropagation();
            onToggle();
          }}
        >
          <IconChevronRight size={15} />
        </span>
      ) : (
        <span className={styles.chevron} aria-hidden>
          <QueueMark hue={hue} />
        </span>
      )}
      <span className={styles.text}>{queue.displayName || queue.name}</span>
      {drafted !== undefined && (
        <span className={styles.mark} title={DRAFT.inDraft(queue.name)}>
          {EDIT_ACTIONS_IN_DRAFT[drafted.action]}
        </span>
      )}
      {queue.managedBy !== "" && (
        <span title={FORM.managedElsewhere(queue.managedBy)}>
          <IconLock
            size={14}
            color="var(--dim)"
            aria-label={FORM.managedElsewhere(queue.managedBy)}
          />
        </span>
      )}
      {problem !== null && (
        <span title={problem}>
          <IconAlertTriangle size={15} color="var(--bad)" aria-label={problem} />
        </span>
      )}
    </div>
  );
}

function NumberCell({ text }: { text: string }) {
  return (
    <div role="gridcell" className={styles.number}>
      {text}
    </div>
  );
}

/** A value that can be edited in its place; what the draft gives it takes the place of the present one. */
function ValueCell(props: QueueRowProps & { pointer: Pointer }) {
  const { queue, drafted, pointer, inline, editing } = props;
  if (editing === pointer && inline !== undefined) {
    return <InlineCell queue={queue} drafted={drafted} pointer={pointer} inline={inline} />;
  }
  const value = valueIn(queue, pointer);
  const next = draftedValue(drafted, pointer);
  const text = cellText(pointer, value);
  const classes = [styles.number];
  if (next !== undefined) classes.push(styles.drafted);
  else if (typeof value !== "number") classes.push(styles.word);
  if (inline !== undefined) classes.push(styles.editable);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: F2 on the row does the same
    <div
      role="gridcell"
      className={classes.join(" ")}
      title={next === undefined ? undefined : DRAFT.was(text)}
      onClick={(event) => {
        if (inline === undefined) return;
        event.stopPropagation();
        inline.start(queue.name, pointer);
      }}
    >
      {next === undefined ? text : cellText(pointer, next ?? undefined)}
    </div>
  );
}

/** Compare what a row shows, because the tree makes new row props at every render. */
function isSameRow(a: QueueRowProps, b: QueueRowProps): boolean {
  return (
    a.queue === b.queue &&
    a.resource === b.resource &&
    a.hue === b.hue &&
    a.level === b.level &&
    a.isFolder === b.isFolder &&
    a.isOpen === b.isOpen &&
    a.isSelected === b.isSelected &&
    a.isCut === b.isCut &&
    a.drafted === b.drafted &&
    a.reach === b.reach &&
    a.trend === b.trend &&
    a.start === b.start &&
    a.inline === b.inline &&
    a.editing === b.editing &&
    a.rowProps.tabIndex === b.rowProps.tabIndex &&
    a.rowProps["aria-posinset"] === b.rowProps["aria-posinset"] &&
    a.rowProps["aria-setsize"] === b.rowProps["aria-setsize"]
  );
}

import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import { entryProblemText, fieldName, INLINE, startText } from "../../../i18n/queues.ts";
import type { DraftEdit } from "../../../model/draft.ts";
import { draftedValue, patchBack, readInline, valueIn } from "../../../model/inline.ts";
import type { Queue, QueuePatch } from "../../../model/rows.ts";
import type { Pointer } from "../../../model/values.ts";
import styles from "./QueueTree.module.css";

/** How cells are edited in their place. */
export type Inline = {
  readonly start: (queue: string, pointer: Pointer) => void;
  /** End the editing of a cell; the patch goes to the draft, and the focus to the next cell or back to the row. */
  readonly end: (
    queue: string,
    pointer: Pointer,
    patch: QueuePatch | null,
    step: 1 | -1 | 0,
  ) => void;
};

type Props = {
  queue: Queue;
  drafted: DraftEdit | undefined;
  pointer: Pointer;
  inline: Inline;
};

/** A cell that is being edited: Enter and Tab take the text over, Escape leaves everything as it was. */
export function InlineCell({ queue, drafted, pointer, inline }: Props) {
  const next = draftedValue(drafted, pointer);
  const [text, setText] = useState(() =>
    startText(pointer, next === undefined ? valueIn(queue, pointer) : (next ?? undefined)),
  );
  const input = useRef<HTMLInputElement>(null);
  const isOver = useRef(false);
  useEffect(() => input.current?.select(), []);
  const result = readInline(queue, pointer, text);
  const problem = typeof result === "string" ? entryProblemText(result, text) : null;
  const finish = (patch: QueuePatch | null, step: 1 | -1 | 0) => {
    if (isOver.current) return;
    isOver.current = true;
    inline.end(queue.name, pointer, patch, step);
  };
  const take = (step: 1 | -1 | 0) => {
    if (typeof result === "string") return;
    // A text that says what the queue has already takes back what the draft says.
    const isBack = result === null && next !== undefined;
    finish(isBack ? patchBack(queue, pointer, next) : result, step);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    event.stopPropagation();
    if (event.key === "Escape") finish(null, 0);
    else if (event.key === "Enter") take(0);
    else if (event.key === "Tab" && problem === null) take(event.shiftKey ? -1 : 1);
    else return;
    event.preventDefault();
  };
  return (
    <div role="gridcell">
      <input
        ref={input}
        className={styles.inline}
        aria-label={INLINE.cell(fieldName(pointer), queue.name)}
        aria-invalid={problem !== null}
        title={problem ?? INLINE.hint}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
        onClick={(event) => event.stopPropagation()}
        onKeyDown={onKeyDown}
        onBlur={() => (typeof result === "string" ? finish(null, 0) : take(0))}
      />
      {problem !== null && (
        <span role="alert" className={styles.inlineProblem}>
          {problem}
        </span>
      )}
    </div>
  );
}

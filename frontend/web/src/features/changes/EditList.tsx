import { Button } from "@mantine/core";
import { Link } from "react-router";
import type { ChangeContent } from "../../api/changes.ts";
import { DiffTable } from "../../editing/DiffTable.tsx";
import { CHANGE, DRAFT, EDIT_ACTIONS } from "../../i18n/changes.ts";
import { editsOf, withoutEdit } from "../../model/draft.ts";
import type { Change } from "../../model/rows.ts";
import { Panel } from "../../ui/Panel.tsx";
import { Badge } from "../../ui/StateBadge.tsx";
import styles from "./Change.module.css";
import { PatchExport } from "./PatchExport.tsx";

type Props = {
  change: Change;
  /** Store other edits; without it the edits can only be read. */
  onWrite: ((content: ChangeContent) => Promise<unknown>) | undefined;
  /** Called when the last edit is removed. */
  onEmpty: () => Promise<unknown>;
};

/** What the change would do to each queue, in the order of writing. */
export function EditList({ change, onWrite, onEmpty }: Props) {
  const remove = (queue: string) => {
    const edits = withoutEdit(editsOf(change), queue);
    if (edits.length === 0) void onEmpty();
    else void onWrite?.({ edits });
  };
  return (
    <Panel
      title={CHANGE.edits}
      note={DRAFT.queues(change.queues)}
      tools={<PatchExport change={change} />}
    >
      {change.plan.map(({ queue, action, diff }) => (
        <section key={queue} className={styles.edit} aria-label={queue}>
          <h3 className={styles.queue}>
            <Link to={`/queues?queue=${encodeURIComponent(queue)}`}>{queue}</Link>
            {action !== "update" && (
              <Badge tone={action === "delete" ? "bad" : "accent"}>{EDIT_ACTIONS[action]}</Badge>
            )}
            {onWrite !== undefined && (
              <Button
                className={styles.remove ?? ""}
                size="compact-xs"
                variant="subtle"
                aria-label={CHANGE.remove(queue)}
                onClick={() => remove(queue)}
              >
                {CHANGE.removeShort}
              </Button>
            )}
          </h3>
          {diff.length === 0 ? <p>{CHANGE.unchanged}</p> : <DiffTable diff={diff} name={queue} />}
        </section>
      ))}
    </Panel>
  );
}

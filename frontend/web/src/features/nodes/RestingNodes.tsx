import { useState } from "react";
import { useMe } from "../../api/useMe.ts";
import { retryBindsOn } from "../../api/workloads.ts";
import { RESTING } from "../../i18n/binds.ts";
import type { Node } from "../../model/rows.ts";
import { LockableButton } from "../../ui/LockableButton.tsx";
import { useNow } from "../../ui/now.ts";
import { reportDone } from "../../ui/reportDone.tsx";
import { useStale } from "../../ui/useStale.ts";
import { WriteForm } from "../../ui/WriteForm.tsx";
import { restEnd } from "./lines.ts";
import styles from "./Nodes.module.css";

/** The nodes that get no new pods after failed binds, each with a button that ends it; nothing without any. */
export function RestingNodes({ nodes }: { nodes: ReadonlyMap<string, Node> }) {
  const me = useMe();
  const now = useNow();
  const isStale = useStale() !== null;
  const [opened, setOpened] = useState<string | null>(null);
  const resting = [...nodes.values()].filter((node) => restEnd(node, now) !== null);
  const mayAct = me?.rights.actOnWorkloads === true;
  const locked = isStale ? RESTING.stale : mayAct ? null : RESTING.forbidden;
  return (
    <>
      {resting.length > 0 && (
        <ul className={styles.resting} aria-label={RESTING.title}>
          {resting.map(({ name, rest }) => (
            <li key={name}>
              {RESTING.node(name, rest?.until ?? "", rest?.pods.length ?? 0)}
              <LockableButton
                text={RESTING.button}
                label={RESTING.buttonLabel(name)}
                locked={locked}
                onClick={() => setOpened(name)}
              />
            </li>
          ))}
        </ul>
      )}
      {opened !== null && (
        <WriteForm
          title={RESTING.buttonLabel(opened)}
          submitText={RESTING.submit}
          isReady
          onSubmit={() => retryBindsOn(opened)}
          onDone={() => {
            reportDone(RESTING.done, opened);
            setOpened(null);
          }}
          onClose={() => setOpened(null)}
        >
          <p>{RESTING.text}</p>
        </WriteForm>
      )}
    </>
  );
}

import { Combobox, TextInput, useCombobox } from "@mantine/core";
import { useDeferredValue, useEffect, useMemo, useState } from "react";
import { useNavigate } from "react-router";
import { PALETTE } from "../../i18n/app.ts";
import { useTopic } from "../../live/react.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { PAGES } from "../pages.ts";
import styles from "./Palette.module.css";
import { type Hit, search } from "./search.ts";

/** Search over everything and go there, by keyboard alone: type, arrow keys, Enter. */
export function Palette({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState("");
  const hits = useHits(text);
  const navigate = useNavigate();
  const combobox = useCombobox({ opened: true });
  const { selectFirstOption } = combobox;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the options are others whenever the hits are
  useEffect(() => {
    selectFirstOption();
  }, [hits, selectFirstOption]);
  const open = (to: string) => {
    onClose();
    void navigate(to);
  };
  return (
    <Dialog title={PALETTE.title} onClose={onClose}>
      <Combobox store={combobox} onOptionSubmit={open}>
        <Combobox.EventsTarget>
          <TextInput
            data-autofocus
            aria-label={PALETTE.label}
            placeholder={PALETTE.placeholder}
            value={text}
            onChange={(event) => setText(event.currentTarget.value)}
          />
        </Combobox.EventsTarget>
        <Combobox.Options className={styles.options ?? ""} aria-label={PALETTE.results}>
          {hits.length === 0 && <Combobox.Empty>{PALETTE.none}</Combobox.Empty>}
          {groups(hits).map(([kind, members]) => (
            <Combobox.Group key={kind} label={PALETTE.kinds[kind]}>
              {members.map(({ key, label, detail, to }) => (
                <Combobox.Option key={`${kind} ${key}`} value={to}>
                  <span className={styles.label}>{label}</span>
                  <span className={styles.detail}>{detail}</span>
                </Combobox.Option>
              ))}
            </Combobox.Group>
          ))}
        </Combobox.Options>
      </Combobox>
    </Dialog>
  );
}

function useHits(text: string): Hit[] {
  const { rows: queues } = useTopic("queues");
  const { rows: workloads } = useTopic("workloads");
  const { rows: nodes } = useTopic("nodes");
  // Rows change several times a second; typing comes first.
  const deferred = useDeferredValue(text);
  return useMemo(
    () =>
      search(deferred, {
        pages: PAGES,
        queues: queues.values(),
        workloads: workloads.values(),
        nodes: nodes.values(),
      }),
    [deferred, queues, workloads, nodes],
  );
}

function groups(hits: readonly Hit[]): [Hit["kind"], Hit[]][] {
  return [...Map.groupBy(hits, ({ kind }) => kind)];
}

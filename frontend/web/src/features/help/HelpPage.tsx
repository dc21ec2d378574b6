import { TextInput } from "@mantine/core";
import type { ReactNode } from "react";
import { Link } from "react-router";
import { GLOSSARY, HELP } from "../../i18n/glossary.ts";
import { Page } from "../../ui/Page.tsx";
import { Panel } from "../../ui/Panel.tsx";
import { Empty } from "../../ui/States.tsx";
import { useSearch } from "../../ui/useSearch.ts";
import styles from "./Help.module.css";

/** The words of the field, and which page answers which question. */
export function HelpPage() {
  const [search, changeSearch] = useSearch();
  const text = (search.get("q") ?? "").trim().toLowerCase();
  const words = Object.values(GLOSSARY).filter((word) =>
    `${word.name} ${word.text}`.toLowerCase().includes(text),
  );
  return (
    <Page title={HELP.title}>
      <div className={styles.columns}>
        <Panel
          title={HELP.glossary}
          tools={
            <TextInput
              data-page-search
              size="xs"
              aria-label={HELP.search}
              placeholder={HELP.search}
              value={search.get("q") ?? ""}
              onChange={(event) => changeSearch({ q: event.currentTarget.value })}
            />
          }
        >
          {words.length === 0 ? (
            <Empty title={HELP.none} />
          ) : (
            <WordList words={words.map((word) => ({ ...word, key: word.name }))} />
          )}
        </Panel>
        <Panel title={HELP.pages}>
          <WordList
            words={HELP.answers.map(([to, name, text]) => ({
              key: to,
              name: <Link to={to}>{name}</Link>,
              text,
            }))}
          />
        </Panel>
      </div>
    </Page>
  );
}

type Word = { readonly key: string; readonly name: ReactNode; readonly text: string };

function WordList({ words }: { words: readonly Word[] }) {
  return (
    <dl className={styles.words}>
      {words.map(({ key, name, text }) => (
        <div key={key}>
          <dt>{name}</dt>
          <dd>{text}</dd>
        </div>
      ))}
    </dl>
  );
}

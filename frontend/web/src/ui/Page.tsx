import { type ReactNode, useEffect } from "react";
import { documentTitle } from "../i18n/ui.ts";
import styles from "./Page.module.css";

type Props = { title: string; note?: ReactNode; tools?: ReactNode; children: ReactNode };

/** A page: its heading, which is also the title of the browser tab, and its content. */
export function Page({ title, note, tools, children }: Props) {
  useEffect(() => {
    document.title = documentTitle(title);
  }, [title]);
  return (
    <div className={styles.page}>
      <div className={styles.head}>
        <h1 className={styles.title}>{title}</h1>
        {note !== undefined && <div className={styles.note}>{note}</div>}
        {tools !== undefined && <div className={styles.tools}>{tools}</div>}
      </div>
      {children}
    </div>
  );
}

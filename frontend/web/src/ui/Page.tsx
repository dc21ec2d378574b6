import type { ReactNode } from "react";
import styles from "./Page.module.css";

type Props = { title: string; note?: ReactNode; tools?: ReactNode; children: ReactNode };

export function Page({ title, note, tools, children }: Props) {
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

import { type ReactNode, useId } from "react";
import { Boundary } from "./Boundary.tsx";
import styles from "./Panel.module.css";

type Props = {
  title: string;
  note?: ReactNode;
  tools?: ReactNode;
  flush?: boolean;
  className?: string | undefined;
  children: ReactNode;
};

/** A titled region of a page. An error inside does not affect the other panels. */
export function Panel({ title, note, tools, flush = false, className = "", children }: Props) {
  const id = useId();
  return (
    <section className={`${styles.panel} ${className}`} aria-labelledby={id}>
      <div className={styles.head}>
        <h2 id={id} className={styles.title}>
          {title}
        </h2>
        {note !== undefined && <span className={styles.note}>{note}</span>}
        {tools !== undefined && <div className={styles.tools}>{tools}</div>}
      </div>
      <div className={flush ? styles.flush : styles.body}>
        <Boundary>{children}</Boundary>
      </div>
    </section>
  );
}

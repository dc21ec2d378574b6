import type { ReactNode } from "react";
import styles from "./Card.module.css";

/** A named region that fills the page below its title: a tree, a grid or a table with its tools. */
export function Card({ name, children }: { name: string; children: ReactNode }) {
  return (
    <section className={styles.card} aria-label={name}>
      {children}
    </section>
  );
}

import { Link } from "react-router";
import styles from "./Tabs.module.css";

export type TabLink = { readonly key: string; readonly name: string; readonly to: string };

/** Links to the parts of a page, each with an address of its own. */
export function TabNav({
  name,
  tabs,
  active,
}: {
  name: string;
  tabs: readonly TabLink[];
  active: string;
}) {
  return (
    <nav className={styles.tabs} aria-label={name}>
      {tabs.map((tab) => (
        <Link
          key={tab.key}
          className={styles.tab}
          to={tab.to}
          aria-current={active === tab.key ? "page" : undefined}
        >
          {tab.name}
        </Link>
      ))}
    </nav>
  );
}

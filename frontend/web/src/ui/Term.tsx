import { Popover } from "@mantine/core";
import { Link } from "react-router";
import { GLOSSARY, HELP } from "../i18n/glossary.ts";
import styles from "./Term.module.css";

/** A word with its meaning, which opens by click or key beside it. */
export function Term({ entry }: { entry: keyof typeof GLOSSARY }) {
  const { name, text } = GLOSSARY[entry];
  return (
    <Popover position="bottom-start" width={280} shadow="md" withArrow trapFocus returnFocus>
      <Popover.Target>
        <button type="button" className={styles.term}>
          {name}
        </button>
      </Popover.Target>
      <Popover.Dropdown aria-label={name}>
        <div>{text}</div>
        <Link to="/help">{HELP.title}</Link>
      </Popover.Dropdown>
    </Popover>
  );
}

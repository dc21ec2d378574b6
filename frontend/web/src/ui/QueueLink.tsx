import { Link } from "react-router";
import { useHues } from "../live/useHues.ts";
import { useQueueLabels } from "../live/useQueueLabels.ts";
import { queuePath } from "./paths.ts";
import styles from "./QueueMark.module.css";
import { QueueMark } from "./QueueMark.tsx";

/** A link to the page of a queue, with the mark of its hue. */
export function QueueLink({ queue }: { queue: string }) {
  const hues = useHues();
  const label = useQueueLabels();
  return (
    <Link className={styles.link} to={queuePath(queue)} title={queue}>
      <QueueMark hue={hues.get(queue)} />
      {label(queue)}
    </Link>
  );
}

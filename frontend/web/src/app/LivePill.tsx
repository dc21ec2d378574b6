import { Button, Popover } from "@mantine/core";
import { IconPlayerPause, IconPlayerPlay } from "@tabler/icons-react";
import { useClient, useLiveStatus, useTopic } from "../live/react.tsx";
import { clockTime } from "../model/units.ts";
import { useNow } from "../ui/now.ts";
import styles from "./LivePill.module.css";
import { liveWords } from "./liveWords.ts";

/** Whether what is on screen is current, since when, and the switch that makes it stand still. */
export function LivePill() {
  const client = useClient();
  const status = useLiveStatus();
  const { asOf } = useTopic("cluster");
  const words = liveWords(status, client.waiting, useNow());
  return (
    <Popover position="bottom-start" width={290} shadow="md" withArrow trapFocus returnFocus>
      <Popover.Target>
        <button type="button" className={`${styles.pill} ${styles[words.tone]}`}>
          <span className={styles.dot} aria-hidden />
          {words.word}
        </button>
      </Popover.Target>
      <Popover.Dropdown aria-label="Live connection">
        <div>{words.why}</div>
        <dl className={styles.card}>
          <dt>As of</dt>
          <dd>{asOf?.time ? clockTime(asOf.time) : "nothing yet"}</dd>
          <dt>Session</dt>
          <dd>{asOf?.session ?? "none yet"}</dd>
          <dt>Cluster version</dt>
          <dd>{asOf?.rv ?? "unknown"}</dd>
        </dl>
        {status.link === "offline" ? (
          <Button size="compact-sm" onClick={() => client.retryNow()}>
            Try now
          </Button>
        ) : (
          <Button
            size="compact-sm"
            variant="default"
            leftSection={
              status.paused ? <IconPlayerPlay size={14} /> : <IconPlayerPause size={14} />
            }
            onClick={() => client.setPaused(!status.paused)}
          >
            {status.paused ? "Resume updates" : "Pause updates"}
          </Button>
        )}
      </Popover.Dropdown>
    </Popover>
  );
}

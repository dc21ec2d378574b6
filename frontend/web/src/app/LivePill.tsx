import { Button, Popover } from "@mantine/core";
import { IconPlayerPause, IconPlayerPlay } from "@tabler/icons-react";
import { LIVE } from "../i18n/app.ts";
import { clockTime } from "../i18n/numbers.ts";
import { useClient, useLiveStatus } from "../live/react.tsx";
import { useNow } from "../ui/now.ts";
import styles from "./LivePill.module.css";
import { liveState } from "./liveState.ts";

/** Shows whether the data is current and since when, and pauses or resumes updates. */
export function LivePill() {
  const client = useClient();
  const status = useLiveStatus();
  const { asOf } = status;
  const { tone, label, detail } = liveState(status, useNow());
  return (
    <Popover position="bottom-start" width={290} shadow="md" withArrow trapFocus returnFocus>
      <Popover.Target>
        <button type="button" className={`${styles.pill} ${styles[tone]}`}>
          <span className={styles.dot} aria-hidden />
          {label}
        </button>
      </Popover.Target>
      <Popover.Dropdown aria-label={LIVE.dialog}>
        <div>{detail}</div>
        <dl className={styles.card}>
          <dt>{LIVE.asOf}</dt>
          <dd>{asOf?.time ? clockTime(asOf.time) : LIVE.nothingYet}</dd>
          <dt>{LIVE.session}</dt>
          <dd>{asOf?.session ?? LIVE.noSession}</dd>
          <dt>{LIVE.clusterVersion}</dt>
          <dd>{asOf?.rv ?? LIVE.unknown}</dd>
        </dl>
        {status.link === "offline" ? (
          <Button size="compact-sm" onClick={() => client.retryNow()}>
            {LIVE.retry}
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
            {status.paused ? LIVE.resume : LIVE.pause}
          </Button>
        )}
      </Popover.Dropdown>
    </Popover>
  );
}

import {
  IconAlertTriangle,
  IconCheck,
  IconCircleDashed,
  IconClock,
  IconLock,
  IconPlayerPlayFilled,
  IconX,
} from "@tabler/icons-react";
import type { ComponentType } from "react";
import { stateText } from "../i18n/reasons.ts";
import styles from "./Badge.module.css";

type Look = { icon: ComponentType<{ size: number }>; tone: string | undefined };

const LOOKS: Readonly<Record<string, Look>> = {
  running: { icon: IconPlayerPlayFilled, tone: styles.good },
  partial: { icon: IconCircleDashed, tone: styles.accent },
  binding: { icon: IconCircleDashed, tone: styles.accent },
  pending: { icon: IconClock, tone: styles.warn },
  gated: { icon: IconLock, tone: styles.warn },
  finished: { icon: IconCheck, tone: styles.calm },
  succeeded: { icon: IconCheck, tone: styles.calm },
  terminating: { icon: IconX, tone: styles.calm },
  failed: { icon: IconX, tone: styles.bad },
};
const UNKNOWN_LOOK: Look = { icon: IconAlertTriangle, tone: styles.calm };

/** Show a state as icon and text, because colour alone is not enough. */
export function StateBadge({ state }: { state: string }) {
  const { icon: Icon, tone } = LOOKS[state] ?? UNKNOWN_LOOK;
  return (
    <span className={`${styles.badge} ${tone}`}>
      <Icon size={12} aria-hidden />
      {stateText(state)}
    </span>
  );
}

export function Badge({ tone, children }: { tone: keyof typeof styles; children: string }) {
  return <span className={`${styles.badge} ${styles[tone]}`}>{children}</span>;
}

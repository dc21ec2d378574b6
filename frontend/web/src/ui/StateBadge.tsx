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
import { STATES } from "../i18n/en.ts";
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
const UNKNOWN: Look = { icon: IconAlertTriangle, tone: styles.calm };

/** A state as icon and word: never by colour alone. */
export function StateBadge({ state }: { state: string }) {
  const { icon: Icon, tone } = LOOKS[state] ?? UNKNOWN;
  return (
    <span className={`${styles.badge} ${tone}`}>
      <Icon size={12} aria-hidden />
      {STATES[state] ?? state}
    </span>
  );
}

export function Badge({ tone, children }: { tone: keyof typeof styles; children: string }) {
  return <span className={`${styles.badge} ${styles[tone]}`}>{children}</span>;
}

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

type StateStyle = { icon: ComponentType<{ size: number }>; toneClass: string | undefined };

const STATE_STYLES: Readonly<Record<string, StateStyle>> = {
  running: { icon: IconPlayerPlayFilled, toneClass: styles.good },
  partial: { icon: IconCircleDashed, toneClass: styles.accent },
  binding: { icon: IconCircleDashed, toneClass: styles.accent },
  pending: { icon: IconClock, toneClass: styles.warn },
  gated: { icon: IconLock, toneClass: styles.warn },
  finished: { icon: IconCheck, toneClass: styles.neutral },
  succeeded: { icon: IconCheck, toneClass: styles.neutral },
  terminating: { icon: IconX, toneClass: styles.neutral },
  failed: { icon: IconX, toneClass: styles.bad },
};
const UNKNOWN_STATE_STYLE: StateStyle = { icon: IconAlertTriangle, toneClass: styles.neutral };

/** Show a state as icon and text: some people cannot distinguish the colours. */
export function StateBadge({ state }: { state: string }) {
  const { icon: Icon, toneClass } = STATE_STYLES[state] ?? UNKNOWN_STATE_STYLE;
  return (
    <span className={`${styles.badge} ${toneClass}`}>
      <Icon size={12} aria-hidden />
      {stateText(state)}
    </span>
  );
}

/** Show a short text on a colour; `tone` is a class of Badge.module.css. */
export function Badge({ tone, children }: { tone: keyof typeof styles; children: string }) {
  return <span className={`${styles.badge} ${styles[tone]}`}>{children}</span>;
}

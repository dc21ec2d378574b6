import { Button, Skeleton } from "@mantine/core";
import type { ReactNode } from "react";
import { STATES_TEXT } from "../i18n/ui.ts";
import styles from "./States.module.css";

/** Placeholder lines while rows are loading. They appear after 150 ms, so fast loads do not flicker. */
export function Loading({
  rows = 6,
  label = STATES_TEXT.loading,
}: {
  rows?: number;
  label?: string;
}) {
  return (
    <div className={styles.bones} role="status" aria-label={label}>
      {Array.from({ length: rows }, (_, index) => `bone-${index}`).map((key) => (
        <Skeleton key={key} height={18} radius="sm" />
      ))}
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className={styles.box}>
      <div className={styles.title}>{title}</div>
      <div>{children}</div>
    </div>
  );
}

type FailureProps = { title: string; detail: string; requestId?: string; onRetry?: () => void };

export function Failure({ title, detail, requestId, onRetry }: FailureProps) {
  return (
    <div className={styles.failure} role="alert">
      <strong>{title}</strong>
      <div className={styles.detail}>{detail}</div>
      {requestId !== undefined && <div>{STATES_TEXT.request(requestId)}</div>}
      {onRetry !== undefined && (
        <Button size="compact-sm" variant="default" onClick={onRetry}>
          {STATES_TEXT.retry}
        </Button>
      )}
    </div>
  );
}

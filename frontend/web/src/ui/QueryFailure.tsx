import { Button, Group } from "@mantine/core";
import { useState } from "react";
import { ApiProblem } from "../api/problem.ts";
import { clockTime } from "../i18n/numbers.ts";
import { REFUSED, STATES_TEXT } from "../i18n/ui.ts";
import styles from "./States.module.css";

type Props = {
  error: Error;
  onRetry: () => void;
};

/** Why a part of the page has no data: what the server answered, since when, another try, and details to copy. */
export function QueryFailure({ error, onRetry }: Props) {
  const [since] = useState(() => new Date().toISOString());
  const [isCopied, setCopied] = useState(false);
  const problem = error instanceof ApiProblem ? error.body : null;
  const title = problem?.title ?? REFUSED;
  const copy = async () => {
    const details = [title, error.message, problem?.requestId, since, location.href];
    await navigator.clipboard.writeText(details.filter(Boolean).join("\n"));
    setCopied(true);
  };
  return (
    <div className={styles.failure} role="alert">
      <strong>{title}</strong> {STATES_TEXT.since(clockTime(since))}
      <div className={styles.detail}>{error.message}</div>
      <Group gap="xs">
        <Button size="compact-sm" variant="default" onClick={onRetry}>
          {STATES_TEXT.retry}
        </Button>
        <Button size="compact-sm" variant="default" onClick={() => void copy()}>
          {isCopied ? STATES_TEXT.copied : STATES_TEXT.copyDetails}
        </Button>
        {problem?.requestId !== undefined && <span>{STATES_TEXT.request(problem.requestId)}</span>}
      </Group>
    </div>
  );
}

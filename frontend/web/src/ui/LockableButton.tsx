import { Button, Tooltip } from "@mantine/core";

type Props = { text: string; label?: string; locked: string | null; onClick: () => void };

const TOOLTIP_EVENTS = { hover: true, focus: true, touch: true };

/** A small button that says why it cannot be used; it is not `disabled`, so that keyboards and screen readers reach the reason. */
export function LockableButton({ text, label, locked, onClick }: Props) {
  return (
    <Tooltip label={locked} disabled={locked === null} events={TOOLTIP_EVENTS}>
      <Button
        size="xs"
        variant="default"
        aria-label={label}
        aria-disabled={locked !== null}
        {...(locked === null ? {} : { "data-disabled": true, "aria-description": locked })}
        onClick={() => {
          if (locked === null) onClick();
        }}
      >
        {text}
      </Button>
    </Tooltip>
  );
}

import { Button, Group } from "@mantine/core";

type Props = {
  cancelText: string;
  confirmText: string;
  isDangerous?: boolean;
  /** Whether it cannot be confirmed now. */
  isLocked?: boolean;
  onCancel: () => void;
  onConfirm: () => void;
};

/** Show the two buttons of a dialog that asks for confirmation; the button that cancels has the focus. */
export function DialogButtons({
  cancelText,
  confirmText,
  isDangerous = true,
  isLocked = false,
  onCancel,
  onConfirm,
}: Props) {
  return (
    <Group justify="flex-end" mt="md">
      <Button variant="default" data-autofocus onClick={onCancel}>
        {cancelText}
      </Button>
      <Button {...(isDangerous ? { color: "red.9" } : {})} disabled={isLocked} onClick={onConfirm}>
        {confirmText}
      </Button>
    </Group>
  );
}

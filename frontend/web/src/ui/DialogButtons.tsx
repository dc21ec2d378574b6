import { Button, Group } from "@mantine/core";

type Props = {
  cancelText: string;
  confirmText: string;
  isDangerous?: boolean;
  onCancel: () => void;
  onConfirm: () => void;
};

/** Show the two buttons of a dialog that asks for confirmation; the button that cancels has the focus. */
export function DialogButtons({
  cancelText,
  confirmText,
  isDangerous = true,
  onCancel,
  onConfirm,
}: Props) {
  return (
    <Group justify="flex-end" mt="md">
      <Button variant="default" data-autofocus onClick={onCancel}>
        {cancelText}
      </Button>
      <Button {...(isDangerous ? { color: "red.9" } : {})} onClick={onConfirm}>
        {confirmText}
      </Button>
    </Group>
  );
}

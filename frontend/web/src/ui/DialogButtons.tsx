import { Button, Group } from "@mantine/core";

type Props = {
  stay: string;
  go: string;
  isDangerous?: boolean;
  onStay: () => void;
  onGo: () => void;
};

/** The two buttons of a dialog that asks before it goes on; the harmless one has the focus. */
export function DialogButtons({ stay, go, isDangerous = true, onStay, onGo }: Props) {
  return (
    <Group justify="flex-end" mt="md">
      <Button variant="default" data-autofocus onClick={onStay}>
        {stay}
      </Button>
      <Button {...(isDangerous ? { color: "red.9" } : {})} onClick={onGo}>
        {go}
      </Button>
    </Group>
  );
}

import { Button, Group } from "@mantine/core";

type Props = { stay: string; go: string; onStay: () => void; onGo: () => void };

/** The two buttons of a dialog that asks before something is lost; the harmless one has the focus. */
export function DialogButtons({ stay, go, onStay, onGo }: Props) {
  return (
    <Group justify="flex-end" mt="md">
      <Button variant="default" data-autofocus onClick={onStay}>
        {stay}
      </Button>
      <Button color="red.9" onClick={onGo}>
        {go}
      </Button>
    </Group>
  );
}

import { Button, Group, Textarea } from "@mantine/core";
import { useState } from "react";
import { SHARD_JSON } from "../../../i18n/shards.ts";
import { CANCEL } from "../../../i18n/ui.ts";
import { readSpec, type SpecPatch } from "../../../model/shards.ts";
import { Dialog } from "../../../ui/Dialog.tsx";

type Props = {
  name: string;
  spec: SpecPatch;
  onReview: (spec: SpecPatch) => void;
  onClose: () => void;
};

/** Edits the whole spec as JSON, for the fields that have no control of their own. */
export function SpecDialog({ name, spec, onReview, onClose }: Props) {
  const [text, setText] = useState(() => JSON.stringify(spec, null, 2));
  const edited = readSpec(text);
  const title = SHARD_JSON.title(name);
  return (
    <Dialog title={title} size="xl" onClose={onClose}>
      <form
        aria-label={title}
        onSubmit={(event) => {
          event.preventDefault();
          if (edited !== null) onReview(edited);
        }}
      >
        <p>{SHARD_JSON.text}</p>
        <Textarea
          label={SHARD_JSON.label}
          data-autofocus
          autosize
          minRows={8}
          maxRows={22}
          spellCheck={false}
          styles={{ input: { fontFamily: "monospace" } }}
          value={text}
          error={edited === null ? SHARD_JSON.invalid : undefined}
          onChange={(event) => setText(event.currentTarget.value)}
        />
        <Group justify="flex-end" mt="md">
          <Button variant="default" onClick={onClose}>
            {CANCEL}
          </Button>
          <Button type="submit" disabled={edited === null}>
            {SHARD_JSON.review}
          </Button>
        </Group>
      </form>
    </Dialog>
  );
}

import { SegmentedControl } from "@mantine/core";
import { RESOURCE_NAME } from "../i18n/numbers.ts";
import { QUEUES } from "../i18n/queues.ts";
import { RESOURCES, type Resource } from "../model/rows.ts";
import { useChoice } from "./useChoice.ts";

const CHOICES = RESOURCES.map((value) => ({ value, label: RESOURCE_NAME[value] }));

type Props = { value: Resource; onChange: (resource: string) => void };

/** The resource whose amounts a page shows. */
export function ResourcePicker({ value, onChange }: Props) {
  return (
    <SegmentedControl
      size="xs"
      aria-label={QUEUES.resource}
      data={CHOICES}
      value={value}
      onChange={onChange}
    />
  );
}

/** Return the resource that the address names, GPUs if none, and a function that changes it. */
export function useResource() {
  return useChoice("resource", RESOURCES, "gpu");
}

import { SegmentedControl } from "@mantine/core";
import { RANGES, type RangeName } from "../api/usage.ts";
import { RANGE_NAMES, USAGE } from "../i18n/usage.ts";
import { useChoice } from "./useChoice.ts";

type Props = {
  value: RangeName;
  offered: readonly RangeName[];
  onChange: (range: string) => void;
};

/** Buttons that choose how long a time a page shows; it ends now. */
export function RangePicker({ value, offered, onChange }: Props) {
  return (
    <SegmentedControl
      size="xs"
      aria-label={USAGE.range}
      data={offered.map((range) => ({ value: range, label: RANGE_NAMES[range] }))}
      value={value}
      onChange={onChange}
    />
  );
}

const ALL = Object.keys(RANGES) as RangeName[];

/** Return the time range that the address names, else `fallback`, and a function that changes it. */
export function useRange(fallback: RangeName) {
  return useChoice("range", ALL, fallback);
}

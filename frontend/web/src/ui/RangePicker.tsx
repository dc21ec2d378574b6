import { SegmentedControl } from "@mantine/core";
import { RANGES, type RangeName } from "../api/usage.ts";
import { RANGE_NAMES, USAGE } from "../i18n/usage.ts";

type Props = {
  value: RangeName;
  offered: readonly RangeName[];
  onChange: (range: RangeName) => void;
};

/** The length of the range that a page shows; it ends now. */
export function RangePicker({ value, offered, onChange }: Props) {
  return (
    <SegmentedControl
      size="xs"
      aria-label={USAGE.range}
      data={offered.map((range) => ({ value: range, label: RANGE_NAMES[range] }))}
      value={value}
      onChange={(range) => onChange(range as RangeName)}
    />
  );
}

/** Return the range that the address names, else the default. */
export function readRange(text: string | null, otherwise: RangeName): RangeName {
  return text !== null && text in RANGES ? (text as RangeName) : otherwise;
}

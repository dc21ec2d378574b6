import { CHANGE_STATES } from "../../i18n/changes.ts";
import type { ChangeState } from "../../model/rows.ts";
import { Badge } from "../../ui/StateBadge.tsx";

const TONES: Record<ChangeState, "good" | "warn" | "bad" | "neutral" | "accent"> = {
  draft: "neutral",
  requested: "warn",
  approved: "accent",
  rejected: "bad",
  applying: "accent",
  applied: "good",
  rolledBack: "bad",
  stuck: "bad",
};

export function ChangeBadge({ state }: { state: ChangeState }) {
  return <Badge tone={TONES[state]}>{CHANGE_STATES[state]}</Badge>;
}

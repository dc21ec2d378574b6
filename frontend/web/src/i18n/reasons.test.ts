import { describe, expect, it } from "vitest";
import { reasonText, stageText, stateText } from "./reasons.ts";

describe("reasonText", () => {
  it.each([
    ["DeviceShortage", "Not enough free GPUs"],
    ["QueueOrphan", "Its queue is not a leaf, or an ancestor is missing"],
    ["Held", "On hold"],
  ])("explains %s", (code, text) => expect(reasonText(code)).toBe(text));

  it.each([
    ["PodSchedulingErrors", "Pod scheduling errors"],
    ["BudgetBlocked", "Budget blocked"],
    ["MIGProfileMissing", "MIG profile missing"],
    ["NoGPUFits", "No GPU fits"],
    ["later_code", "Later code"],
    ["", ""],
  ])("makes the unknown code %s readable", (code, text) => expect(reasonText(code)).toBe(text));
});

it("makes unknown states and stages readable", () => {
  expect([stateText("onHold"), stageText("preflightCheck")]).toEqual([
    "On hold",
    "Preflight check",
  ]);
});

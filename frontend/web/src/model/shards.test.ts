import { describe, expect, it } from "vitest";
import {
  fieldAt,
  fieldCount,
  openCondition,
  optionText,
  readSpec,
  shardsByName,
  strategyOf,
  withField,
  withoutNulls,
} from "./shards.ts";

describe("a patch of a spec", () => {
  const path = ["plugins", "backfill", "enabled"];

  it("collects fields beside each other, and counts them", () => {
    const patch = withField(withField({}, path, true), ["kValue"], 2);
    expect(patch).toEqual({ plugins: { backfill: { enabled: true } }, kValue: 2 });
    expect(fieldAt(patch, path)).toBe(true);
    expect(fieldAt(patch, ["plugins", "numa", "enabled"])).toBeUndefined();
    expect(fieldCount(patch)).toBe(2);
  });

  it("has nothing left of a field that is as before again", () => {
    expect(withField(withField({}, path, true), path, undefined)).toEqual({});
  });

  it("removes a field with null, which a new object does not have", () => {
    const patch = withField({ kValue: 1 }, ["args", "schedule-period"], null);
    expect(patch).toEqual({ kValue: 1, args: { "schedule-period": null } });
    expect(fieldCount(patch)).toBe(2);
    expect(withoutNulls(patch)).toEqual({ kValue: 1, args: {} });
  });
});

it("states options as texts, durations in seconds", () => {
  expect(optionText({ kind: "duration", value: 1.5 })).toBe("1.5s");
  expect(optionText({ kind: "boolean", value: false })).toBe("false");
});

it("fills nodes up where the spec names no strategy", () => {
  expect(strategyOf({}, "gpu")).toBe("binpack");
  expect(strategyOf({ placementStrategy: { gpu: "spread" } }, "gpu")).toBe("spread");
});

it("lists the default shard first, also without an object", () => {
  expect([...shardsByName([])]).toEqual([["default", null]]);
});

it("finds the condition that is not as it should be", () => {
  const condition = (type: string, status: string) => ({
    type,
    status,
    reason: "",
    message: "",
    lastTransitionTime: null,
  });
  const settled = [condition("Reconciling", "False"), condition("Ready", "True")];
  expect(openCondition({ conditions: settled })).toBeUndefined();
  const starting = [condition("Reconciling", "False"), condition("Available", "False")];
  expect(openCondition({ conditions: starting })?.type).toBe("Available");
});

it("reads only objects as a spec", () => {
  expect(readSpec('{"kValue": 1}')).toEqual({ kValue: 1 });
  expect([readSpec("[]"), readSpec("1"), readSpec("{")]).toEqual([null, null, null]);
});

import { expect, it } from "vitest";
import { workloadName } from "./names.ts";

it("names a pod group after its owner", () => {
  const key = "team/pg-train-82a1f-6-66b3042e-4d9e-487f-960e-0f5ded5994bb";
  expect(workloadName(key)).toBe("team/train-82a1f-6");
  expect(workloadName("team/my-gang")).toBe("team/my-gang");
  expect(workloadName("team/pg-mine")).toBe("team/pg-mine");
});

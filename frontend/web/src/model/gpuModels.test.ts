import { expect, it } from "vitest";
import { queueRow } from "../testing/rows.ts";
import { modelsText, readModels } from "./gpuModels.ts";
import { editableValues, patchOf, readEntry } from "./values.ts";

const MODELS = { H100: { limit: 4 }, A100: { quota: 8, limit: "unlimited" as const } };

it("are one text, whatever their order", () => {
  expect(modelsText(MODELS)).toBe("A100=8/unlimited, H100=-/4");
  expect(readModels("H100=-/4 A100=8/unlimited")).toEqual(MODELS);
});

it.each(["A100", "A100=8", "A100=x/8", "A100=8/4/2", "=1/2"])("%s are no bounds", (text) => {
  expect(readEntry("/gpuModels", { kind: "value", text })).toBe("notModels");
});

it("are patched as a whole, and removed by an empty text", () => {
  const base = editableValues(
    queueRow({ name: "a", gpuModels: { A100: { quota: 1, allocated: 0 } } }),
  );
  expect(base.get("/gpuModels")).toBe("A100=1/-");
  const mine = (text: string | undefined) => new Map([...base, ["/gpuModels", text] as const]);
  expect(patchOf(base, mine("H100=2/3"))).toEqual({ gpuModels: { H100: { quota: 2, limit: 3 } } });
  expect(patchOf(base, mine(undefined))).toEqual({ gpuModels: null });
});

it("fairness among users is on or off", () => {
  const base = editableValues(queueRow({ name: "a" }));
  expect(patchOf(base, new Map([...base, ["/userFairness", "yes"] as const]))).toEqual({
    userFairness: true,
  });
});

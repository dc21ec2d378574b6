import { expect, it } from "vitest";
import { previewAnswer } from "../testing/rows.ts";
import type { DraftEdit } from "./draft.ts";
import type { Preview } from "./rows.ts";
import { stayingWork } from "./staying.ts";

const LOWERED: DraftEdit = { name: "team", action: "update", edit: { quota: { gpu: 4 } } };

function preview(allocated: number, share: number, verdict: Preview["verdict"] = "safe") {
  const amounts = (gpu: number) => ({ gpu, cpuMilli: 0, memoryBytes: 0 });
  const state = { share: amounts(share), allocated: amounts(allocated) };
  const shares = [{ queue: "team", before: state, after: state, changed: false }];
  return previewAnswer({ verdict, shares });
}

it("names work above a lowered quota that is within the fair share", () => {
  expect(stayingWork(preview(10, 12), [LOWERED])).toEqual([
    { queue: "team", quota: 4, allocated: 10, share: 12, isWithinShare: true },
  ]);
});

it("tells apart work beyond the fair share, which stays only while nobody claims the room", () => {
  expect(stayingWork(preview(10, 6), [LOWERED])[0]?.isWithinShare).toBe(false);
});

it.each<[string, Preview, DraftEdit]>([
  ["the quota covers what is used", preview(4, 12), LOWERED],
  ["the edit evicts", preview(10, 12, "evicts"), LOWERED],
  ["the quota is not edited", preview(10, 12), { ...LOWERED, edit: { priority: 3 } }],
  ["the queue is another one", preview(10, 12), { ...LOWERED, name: "other" }],
])("says nothing where %s", (_, answer, edit) => {
  expect(stayingWork(answer, [edit])).toEqual([]);
});

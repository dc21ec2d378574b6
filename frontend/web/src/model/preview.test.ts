import { describe, expect, it } from "vitest";
import { byWorkload } from "./preview.ts";

function eviction(workload: string, gpu: number, withoutEdits: boolean) {
  return {
    cycle: 1,
    workload,
    pod: `${workload}-pod`,
    queue: "vision",
    node: "n1",
    gpu,
    action: "reclaim",
    withoutEdits,
    evictor: "team/asker",
    rule: "reclaimed",
  };
}

describe("byWorkload", () => {
  it("sums up the pods of a workload", () => {
    expect(byWorkload([eviction("team/a", 2, false), eviction("team/a", 1, false)])).toEqual([
      {
        workload: "team/a",
        queue: "vision",
        pods: 2,
        gpus: 3,
        evictor: "team/asker",
        rule: "reclaimed",
        isAnyway: false,
      },
    ]);
  });

  it("lists what the edits cause before what happens anyway", () => {
    const rows = [eviction("team/anyway", 1, true), eviction("team/caused", 1, false)];
    expect(byWorkload(rows).map(({ workload }) => workload)).toEqual([
      "team/caused",
      "team/anyway",
    ]);
  });

  it("counts a workload as caused if one of its pods is", () => {
    const rows = [eviction("team/a", 1, true), eviction("team/a", 1, false)];
    expect(byWorkload(rows)[0]?.isAnyway).toBe(false);
  });
});

import { expect, test } from "vitest";
import type { Health } from "../model/rows.ts";
import { healthLines } from "./healthLines.ts";

const HEALTHY: Health = { status: "ok", faults: [], processes: [], setAside: [] };

test("a healthy installation has no banner", () => {
  const web = { name: "web", fault: "", heldObject: null, restarts: 0, hangs: 0 };
  expect(healthLines({ ...HEALTHY, processes: [web] })).toEqual([]);
});

test("a fault is shown with its time and what to do", () => {
  const since = "2026-11-30T02:00:00Z";
  const [line] = healthLines({
    ...HEALTHY,
    status: "unready",
    faults: [{ check: "mirror", fault: "the mirror has not heard of the cluster for 30 s", since }],
  });
  expect(line?.title).toBe("The data shown may be out of date");
  expect(line?.text).toContain("the mirror has not heard of the cluster for 30 s");
  expect(line?.text).toContain("restarted automatically");
});

test("an object that is left out is named with its process and the reason", () => {
  const object = {
    process: "mirror",
    kind: "Pod",
    namespace: "team",
    name: "bad",
    time: "2026-11-30T02:00:00Z",
    reason: "no progress for 31 s",
  };
  expect(healthLines({ ...HEALTHY, setAside: [object] })).toEqual([
    {
      key: "mirror-Pod-team-bad",
      title: "mirror leaves out Pod team/bad until it changes. Edit or delete it:",
      text: "no progress for 31 s",
    },
  ]);
});

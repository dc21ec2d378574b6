import { describe, expect, it } from "vitest";
import { workloadRow } from "../../testing/rows.ts";
import { filterWorkloads, readFilter } from "./filter.ts";

const rows = [
  workloadRow({ name: "train", queue: "vision", state: "pending", reason: "OverLimit" }),
  workloadRow({ name: "serve", queue: "inference", state: "running" }),
  workloadRow({ name: "eval", queue: "vision", state: "running", reasonText: "Needs 8 GPUs" }),
];
const isUnder = (queue: string, ancestor: string) =>
  queue === ancestor || (queue === "vision" && ancestor === "research");

const names = (search: string) =>
  filterWorkloads(rows, readFilter(new URLSearchParams(search)), isUnder).map((row) => row.name);

describe("filterWorkloads", () => {
  it.each([
    ["", ["train", "serve", "eval"]],
    ["state=running", ["serve", "eval"]],
    ["queue=research", ["train", "eval"]],
    ["queue=research&state=running", ["eval"]],
    ["reason=OverLimit", ["train"]],
    ["q=needs 8", ["eval"]],
    ["q=team/serve", ["serve"]],
    ["q=nothing", []],
  ])("?%s finds %j", (search, expected) => expect(names(search)).toEqual(expected));
});

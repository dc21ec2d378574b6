import { expect, it } from "vitest";
import { readAuditFilter } from "./filter.ts";

it("reads days as whole days of the user's time zone", () => {
  const filter = readAuditFilter(
    new URLSearchParams("since=2026-11-01&until=2026-11-30&actor= ann "),
  );
  expect(filter).toEqual({
    queue: "",
    actor: "ann",
    kind: "",
    state: "",
    since: new Date(2026, 10, 1).toISOString(),
    until: new Date(2026, 11, 1).toISOString(),
  });
});

it("an address without or with an unreadable day filters no time", () => {
  const { since, until } = readAuditFilter(new URLSearchParams("since=yesterday"));
  expect([since, until]).toEqual(["", ""]);
});

import { MantineProvider } from "@mantine/core";
import { render, screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { FAILED_BINDS } from "../../i18n/binds.ts";
import type { PodRow } from "../../model/rows.ts";
import { FailedBinds } from "./FailedBinds.tsx";

function pod(name: string, seconds: number | null): PodRow {
  const nextAt = new Date(Date.now() + (seconds ?? 0) * 1_000).toISOString();
  const failedBinds =
    seconds === null ? null : { count: 3, lastAt: nextAt, nextAt, nodes: ["n0", "n1"], error: "" };
  return {
    name,
    state: "pending",
    node: "",
    gpu: 1,
    devices: [],
    reason: "BindFailing",
    message: "",
    createdAt: nextAt,
    startedAt: null,
    failedBinds,
  };
}

it("shows how often each pod failed, where last, and when it is tried next", () => {
  const waiting = pod("a-0", 60);
  render(
    <MantineProvider>
      <FailedBinds pods={[waiting, pod("a-1", -1), pod("a-2", null)]} />
    </MantineProvider>,
  );
  const rows = screen.getAllByRole("row").slice(1);
  const cells = rows.map((row) => [...row.children].map(({ textContent }) => textContent));
  const next = FAILED_BINDS.nextAttempt(waiting.failedBinds?.nextAt ?? "");
  expect(cells).toEqual([
    ["a-0", "3", "n1", next],
    ["a-1", "3", "n1", FAILED_BINDS.due],
  ]);
});

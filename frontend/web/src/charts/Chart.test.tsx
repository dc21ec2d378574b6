import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import { Chart, toCsv } from "./Chart.tsx";

describe("toCsv", () => {
  it("quotes what must be quoted and defuses formulas", () => {
    const csv = toCsv(
      ["Queue", "GPUs"],
      [
        ["a,b", 1.5],
        ['say "hi"', null],
        ["=1+1", 2],
      ],
    );
    expect(csv).toBe('Queue,GPUs\r\n"a,b",1.5\r\n"say ""hi""",\r\n\'=1+1,2');
  });
});

describe("Chart", () => {
  it("shows its numbers as a table on demand, and the chart again", async () => {
    render(
      <Chart summary="Two bars" columns={["Queue", "GPUs"]} rows={[["a", 1]]} file="x.csv">
        <div>bars</div>
      </Chart>,
    );
    await userEvent.click(screen.getByRole("button", { name: "Show as table" }));
    expect(screen.queryByText("bars")).toBeNull();
    expect(screen.getAllByRole("cell").map((cell) => cell.textContent)).toEqual(["a", "1"]);
    await userEvent.click(screen.getByRole("button", { name: "Show as chart" }));
    expect(screen.getByText("bars")).toBeTruthy();
  });
});

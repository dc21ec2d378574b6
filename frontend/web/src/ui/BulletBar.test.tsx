import { render, screen } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import { type Bullet, BulletBar, bulletReach } from "./BulletBar.tsx";

const bullet: Bullet = {
  resource: "gpu",
  allocated: 10,
  nonPreemptible: 2,
  requested: 14,
  quota: 8,
  limit: 16,
  share: 12,
};

function spans(change: Partial<Bullet> = {}, max = 20): string[] {
  const { container } = render(<BulletBar bullet={{ ...bullet, ...change }} max={max} />);
  return [...container.querySelectorAll("[role=img] > span")].map((span) => {
    const { left, right } = (span as HTMLElement).style;
    return `${span.className.split(" ").at(-1)} ${left} ${right}`.trim();
  });
}

describe("BulletBar", () => {
  it("stacks non-preemptible, in quota and over quota, then pending requests, and marks the bounds", () => {
    expect(spans()).toEqual([
      "track",
      "nonPreemptible 0% calc(100% - 10%)",
      "inside 10% calc(100% - 40%)",
      "over 40% calc(100% - 50%)",
      "demand 50% calc(100% - 70%)",
      "quota 40%",
      "share 60%",
      "limit 80%",
    ]);
  });

  it("has nothing over an unlimited quota, and everything over an unset one", () => {
    expect(spans({ quota: "unlimited" }).some((span) => span.startsWith("over"))).toBe(false);
    expect(spans({ quota: undefined, nonPreemptible: 0 })).toContain("over 0% calc(100% - 50%)");
  });

  it("describes its numbers as text", () => {
    render(<BulletBar bullet={{ ...bullet, limit: "unlimited" }} max={20} />);
    expect(screen.getByRole("img").getAttribute("aria-label")).toBe(
      "10 GPUs allocated, 14 requested, quota 8, limit unlimited, fair share 12",
    );
  });
});

describe("bulletReach", () => {
  it("makes room for a near limit but not for a far one", () => {
    expect(bulletReach(bullet)).toBe(16);
    expect(bulletReach({ ...bullet, limit: 400 })).toBe(14);
  });
});

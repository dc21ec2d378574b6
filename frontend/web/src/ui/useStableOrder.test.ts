import { act, renderHook } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import { useStableOrder } from "./useStableOrder.ts";

const start = (wanted: string[], isHeld: boolean, sorting = "name") =>
  renderHook(
    (props: { wanted: string[]; isHeld: boolean; sorting: string }) =>
      useStableOrder(props.wanted, props.isHeld, props.sorting),
    { initialProps: { wanted, isHeld, sorting } },
  );

describe("useStableOrder", () => {
  it("follows the wanted order while nobody holds the rows", () => {
    const hook = start(["a", "b"], false);
    hook.rerender({ wanted: ["b", "a"], isHeld: false, sorting: "name" });
    expect(hook.result.current).toMatchObject({ order: ["b", "a"], waiting: 0 });
  });

  it("keeps rows in place while held, drops what vanished and adds what is new below", () => {
    const hook = start(["a", "b", "c"], false);
    hook.rerender({ wanted: ["d", "c", "a"], isHeld: true, sorting: "name" });
    expect(hook.result.current).toMatchObject({ order: ["a", "c", "d"], waiting: 2 });
    act(() => hook.result.current.settle());
    expect(hook.result.current).toMatchObject({ order: ["d", "c", "a"], waiting: 0 });
  });

  it("sorts at once when the person asks for another order", () => {
    const hook = start(["a", "b"], true);
    hook.rerender({ wanted: ["b", "a"], isHeld: true, sorting: "-name" });
    expect(hook.result.current.order).toEqual(["b", "a"]);
  });
});

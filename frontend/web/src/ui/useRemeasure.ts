import { useEffect, useRef } from "react";

/** Discard a virtualizer's remembered sizes when the layout that they were measured in changes. */
export function useRemeasure(virtualizer: { measure(): void }, layout: string | number): void {
  const measured = useRef(layout);
  useEffect(() => {
    if (measured.current === layout) return;
    measured.current = layout;
    virtualizer.measure();
  }, [virtualizer, layout]);
}

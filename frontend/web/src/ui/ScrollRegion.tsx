import type { ReactNode } from "react";

type Props = { name: string; className: string | undefined; children: ReactNode };

/** A part of the page that scrolls by itself, and can be reached by keyboard for that. */
export function ScrollRegion({ name, className, children }: Props) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
    <div className={className} role="region" aria-label={name} tabIndex={0}>
      {children}
    </div>
  );
}

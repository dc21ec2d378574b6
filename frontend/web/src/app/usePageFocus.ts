import { type MouseEvent, type RefObject, useEffect, useRef } from "react";
import { useLocation, useNavigationType } from "react-router";

/** How long a page that one comes back to may take to draw the link it was left by. */
const DRAWN_WITHIN_MS = 3_000;

/**
 * Give the focus a place when the page changes and takes the focused element away: the content of the new page,
 * the same tab of a page with tabs, or, on the way back, the link by which the page was left.
 *
 * Returns what the content calls when something in it is clicked.
 */
export function usePageFocus(content: RefObject<HTMLElement | null>) {
  const { key, pathname } = useLocation();
  const isBack = useNavigationType() === "POP";
  /** The links by which the entries of the history were left, and whether the last of them was a tab. */
  const leftBy = useRef(new Map<string, string>());
  const tab = useRef<string | null>(null);
  const shown = useRef(pathname);
  useEffect(() => {
    if (shown.current === pathname) return;
    shown.current = pathname;
    const page = content.current;
    const isLost = () => [document.body, page].includes(document.activeElement as HTMLElement);
    if (page === null || !isLost()) return;
    page.focus({ preventScroll: true });
    const href = isBack ? leftBy.current.get(key) : tab.current;
    tab.current = null;
    if (href === undefined || href === null) return;
    const deadline = performance.now() + DRAWN_WITHIN_MS;
    let frame = 0;
    const look = () => {
      const link = page.querySelector<HTMLElement>(`a[href="${CSS.escape(href)}"]`);
      if (link !== null && isLost()) link.focus();
      else if (isLost() && performance.now() < deadline) frame = requestAnimationFrame(look);
    };
    look();
    return () => cancelAnimationFrame(frame);
  }, [pathname, key, isBack, content]);
  return (event: MouseEvent) => {
    const link = (event.target as Element).closest("a[href]");
    const href = link?.getAttribute("href") ?? null;
    if (link === null || href === null) return;
    leftBy.current.set(key, href);
    tab.current = link.closest("nav") === null ? null : href;
  };
}

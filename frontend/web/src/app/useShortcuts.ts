import { useEffect, useEffectEvent, useState } from "react";
import { useNavigate } from "react-router";
import { useClient } from "../live/react.tsx";
import { usePreferences } from "../ui/preferences.ts";

const GO: Readonly<Record<string, string>> = {
  o: "/",
  q: "/queues",
  w: "/workloads",
  n: "/nodes",
  s: "/scheduler",
  c: "/changes",
  u: "/usage",
};
const CHORD_MS = 1_200;

/**
 * Listen to the keyboard shortcuts of all pages; the result shows and hides their list.
 *
 * Single keys are off while typing, and a preference switches them off. Ctrl-K or Cmd-K always calls `onSearch`,
 * `z` outside of dialogs calls `onUndo`.
 */
export function useShortcuts(
  onSearch: () => void,
  onUndo: () => void,
): {
  opened: boolean;
  open: () => void;
  close: () => void;
} {
  const navigate = useNavigate();
  const client = useClient();
  const enabled = usePreferences((state) => state.shortcuts);
  const [opened, setOpened] = useState(false);
  const search = useEffectEvent(onSearch);
  const undo = useEffectEvent(onUndo);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      search();
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, []);
  useEffect(() => {
    if (!enabled) return;
    let chordStartedAt = 0;
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      const target = GO[event.key];
      if (target !== undefined && event.timeStamp - chordStartedAt < CHORD_MS) {
        navigate(target);
        chordStartedAt = 0;
        event.stopPropagation();
      } else if (event.key === "g") chordStartedAt = event.timeStamp;
      else if (event.key === "p") client.setPaused(!client.status.paused);
      else if (event.key === "?") setOpened(true);
      else if (event.key === "z" && !isInDialog(event.target)) undo();
      else if (event.key === "/") {
        const field = document.querySelector<HTMLInputElement>("[data-page-search]");
        if (field !== null) {
          event.preventDefault();
          field.focus();
        }
      }
    };
    // In the capture phase, because the tree's type-ahead would consume the second key of a chord.
    window.addEventListener("keydown", onKey, true);
    return () => window.removeEventListener("keydown", onKey, true);
  }, [client, enabled, navigate]);
  return { opened, open: () => setOpened(true), close: () => setOpened(false) };
}

function isInDialog(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest('[role="dialog"]') !== null;
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}

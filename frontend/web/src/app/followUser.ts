import { storePreferences } from "../api/client.ts";
import type { Preferences } from "../model/rows.ts";
import { type Choices, usePreferences } from "../ui/preferences.ts";

/** Mantine's own key, which public/theme.js reads before the first paint. */
const THEME_KEY = "mantine-color-scheme-value";
const KEYS: readonly (keyof Choices)[] = [
  "theme",
  "memoryUnit",
  "density",
  "shortcuts",
  "navFolded",
  "utc",
  "hiddenColumns",
];

/**
 * Let the choices of the user follow them from browser to browser.
 *
 * Those of the server win at the start, and every new one is sent there. Without an answer it stays in this browser.
 *
 * @returns a function that ends it
 */
export function followUser(stored: Preferences): () => void {
  const { theme } = stored;
  if (theme !== undefined) localStorage.setItem(THEME_KEY, theme);
  usePreferences.setState(stored as Partial<Choices>);
  return usePreferences.subscribe((now, before) => {
    const changed = KEYS.filter((key) => now[key] !== before[key]);
    if (changed.length === 0) return;
    const choices = Object.fromEntries(changed.map((key) => [key, now[key]]));
    storePreferences(choices as Preferences).catch(() => {});
  });
}

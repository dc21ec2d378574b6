/** Preferences of the user, stored in this browser; app/followUser.ts also keeps them on the server. */
import { create } from "zustand";
import { persist } from "zustand/middleware";
import type { MemoryUnit } from "../i18n/numbers.ts";

export type Choices = {
  readonly theme: "light" | "dark" | "auto";
  readonly memoryUnit: MemoryUnit;
  readonly density: "comfortable" | "compact";
  readonly shortcuts: boolean;
  readonly navFolded: boolean;
  /** Whether times are shown in UTC instead of the zone of the browser. */
  readonly utc: boolean;
  /** The keys of the columns that a table does not show, by its name. */
  readonly hiddenColumns: Readonly<Record<string, readonly string[]>>;
};
type Preferences = Choices & { set(change: Partial<Choices>): void };

export const usePreferences = create<Preferences>()(
  persist(
    (set) => ({
      theme: "auto",
      memoryUnit: "GB",
      density: "comfortable",
      shortcuts: true,
      navFolded: false,
      utc: false,
      hiddenColumns: {},
      set: (change) => set(change),
    }),
    { name: "kaiweb-preferences" },
  ),
);

export const ROW_HEIGHT = { comfortable: 40, compact: 32 } as const;

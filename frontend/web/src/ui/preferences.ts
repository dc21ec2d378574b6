/** Preferences of the user, stored in this browser. */
import { create } from "zustand";
import { persist } from "zustand/middleware";

type Preferences = {
  readonly density: "comfortable" | "compact";
  readonly shortcuts: boolean;
  readonly navFolded: boolean;
  /** Whether times are shown in UTC instead of the zone of the browser. */
  readonly utc: boolean;
  /** The keys of the columns that a table does not show, by its name. */
  readonly hiddenColumns: Readonly<Record<string, readonly string[]>>;
  set(change: Partial<Omit<Preferences, "set">>): void;
};

export const usePreferences = create<Preferences>()(
  persist(
    (set) => ({
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

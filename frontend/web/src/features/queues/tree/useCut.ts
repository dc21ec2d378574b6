import type { CustomHotkeysConfig, TreeInstance } from "@headless-tree/core";
import { useState } from "react";

type Options = {
  /** Whether the user may move a queue. */
  mayMove: (name: string) => boolean;
  onMove: (name: string, target: string) => void;
};

/** How a queue stands between being cut and being pasted. */
export type Cut = { readonly name: string; readonly isLocked: boolean };

/** Let a queue be cut in the tree with `x` and pasted with `v` below another one, which begins to move it there. */
export function useCut({ mayMove, onMove }: Options) {
  const [cut, setCut] = useState<Cut | null>(null);
  const focused = (tree: TreeInstance<string>) => tree.getFocusedItem().getId();
  const take = (_: KeyboardEvent, tree: TreeInstance<string>) =>
    setCut({ name: focused(tree), isLocked: !mayMove(focused(tree)) });
  const put = (_: KeyboardEvent, tree: TreeInstance<string>) => {
    if (cut === null || cut.isLocked || focused(tree) === cut.name) return;
    setCut(null);
    onMove(cut.name, focused(tree));
  };
  const hotkeys: CustomHotkeysConfig<string> = {
    customCut: { hotkey: "KeyX", handler: take },
    customCutByControl: { hotkey: "MetaOrControl+KeyX", handler: take },
    customPaste: { hotkey: "KeyV", handler: put },
    customPasteByControl: { hotkey: "MetaOrControl+KeyV", handler: put },
    customUncut: { hotkey: "Escape", handler: () => setCut(null) },
  };
  return { cut, hotkeys };
}

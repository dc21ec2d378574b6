import { type ComponentType, type LazyExoticComponent, lazy } from "react";
import { STATES_TEXT } from "../i18n/ui.ts";
import { Failure } from "./States.tsx";

/**
 * Return a part of a page whose file is loaded when the part is first drawn.
 *
 * If that fails, a note with a button is drawn in its place, and the rest of the page stays as it is. The button loads
 * the whole page, because a browser does not load a file again that it could not load.
 */
export function lazyPart<P extends object>(
  load: () => Promise<ComponentType<P>>,
): LazyExoticComponent<ComponentType<P>> {
  return lazy(async () => ({
    default: await load().catch((error: unknown): ComponentType<P> => {
      const detail = error instanceof Error ? error.message : String(error);
      return () => (
        <Failure
          title={STATES_TEXT.missingPart}
          detail={detail}
          onRetry={() => location.reload()}
        />
      );
    }),
  }));
}

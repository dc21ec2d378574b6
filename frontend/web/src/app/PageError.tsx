import { useEffect, useRef } from "react";
import { useRouteError } from "react-router";
import { PAGE_ERROR } from "../i18n/app.ts";
import { useLiveStatus } from "../live/react.tsx";
import { Page } from "../ui/Page.tsx";
import { Failure } from "../ui/States.tsx";

/**
 * Shown when a page could not be loaded: the server does not answer, or a newer version replaced its files. If
 * the connection was lost, the page loads itself again once it is back.
 */
export function PageError() {
  const error = useRouteError();
  const { link } = useLiveStatus();
  const wasLost = useRef(link !== "open");
  useEffect(() => {
    if (link !== "open") wasLost.current = true;
    else if (wasLost.current) location.reload();
  }, [link]);
  return (
    <Page title={PAGE_ERROR.title}>
      <Failure
        title={link === "open" ? PAGE_ERROR.reason : PAGE_ERROR.offline}
        detail={error instanceof Error ? error.message : String(error)}
        onRetry={() => location.reload()}
      />
    </Page>
  );
}

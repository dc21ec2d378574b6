import { useRouteError } from "react-router";
import { PAGE_ERROR } from "../i18n/app.ts";
import { Page } from "../ui/Page.tsx";
import { Failure } from "../ui/States.tsx";

/** Shown when a page could not be loaded, usually because a newer version replaced its files. */
export function PageError() {
  const error = useRouteError();
  return (
    <Page title={PAGE_ERROR.title}>
      <Failure
        title={PAGE_ERROR.reason}
        detail={error instanceof Error ? error.message : String(error)}
        onRetry={() => location.reload()}
      />
    </Page>
  );
}

import { useRouteError } from "react-router";
import { Page } from "../ui/Page.tsx";
import { Failure } from "../ui/States.tsx";

/** A page that could not be loaded, mostly because a newer version replaced its files. */
export function PageError() {
  const error = useRouteError();
  return (
    <Page title="This page could not be loaded">
      <Failure
        title="Loading failed"
        detail={error instanceof Error ? error.message : String(error)}
        onRetry={() => location.reload()}
      />
    </Page>
  );
}

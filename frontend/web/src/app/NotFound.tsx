import { Link, useLocation } from "react-router";
import { Page } from "../ui/Page.tsx";

export function NotFound() {
  const { pathname } = useLocation();
  return (
    <Page title="There is no such page">
      <p>
        Nothing lives at <code>{pathname}</code>.
      </p>
      <Link to="/">Go to the overview</Link>
    </Page>
  );
}

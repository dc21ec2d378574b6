import { Link, useLocation } from "react-router";
import { NOT_FOUND } from "../i18n/app.ts";
import { Page } from "../ui/Page.tsx";
import { RichText } from "../ui/RichText.tsx";

export function NotFound() {
  const { pathname } = useLocation();
  return (
    <Page title={NOT_FOUND.title}>
      <p>
        <RichText text={NOT_FOUND.text} parts={{ path: <code>{pathname}</code> }} />
      </p>
      <Link to="/">{NOT_FOUND.link}</Link>
    </Page>
  );
}

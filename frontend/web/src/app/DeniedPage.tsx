import { Link } from "react-router";
import { DENIED } from "../i18n/app.ts";
import { Denied } from "../ui/Denied.tsx";
import { Page } from "../ui/Page.tsx";
import { useSearch } from "../ui/useSearch.ts";

/** The page for links that refuse: `?right=` says which right is missing. */
export function DeniedPage() {
  const [search] = useSearch();
  return (
    <Page title={DENIED.page} note={<Link to="/">{DENIED.back}</Link>}>
      <Denied right={search.get("right") ?? DENIED.unknown} />
    </Page>
  );
}

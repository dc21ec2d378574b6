import { Link, useParams } from "react-router";
import { useMe } from "../../api/useMe.ts";
import { SETTINGS, USERS } from "../../i18n/settings.ts";
import { Page } from "../../ui/Page.tsx";
import { Empty } from "../../ui/States.tsx";
import tabs from "../../ui/Tabs.module.css";
import { TokensPanel } from "./TokensPanel.tsx";
import { UsersPanel } from "./UsersPanel.tsx";

const TABS = [
  { key: "tokens", name: SETTINGS.tabs.tokens },
  { key: "users", name: SETTINGS.tabs.users },
] as const;

/** Tokens of the user, and for administrators all users with their roles. */
export function SettingsPage() {
  const { tab = "tokens" } = useParams();
  const me = useMe();
  const isAdmin = me?.isAdmin === true;
  return (
    <Page title={SETTINGS.title}>
      <nav className={tabs.tabs} aria-label={SETTINGS.tabList}>
        {TABS.map(({ key, name }) => (
          <Link
            key={key}
            className={tabs.tab}
            to={`/settings/${key}`}
            aria-current={tab === key ? "page" : undefined}
          >
            {name}
          </Link>
        ))}
      </nav>
      {tab !== "users" ? (
        <TokensPanel isAdmin={isAdmin} />
      ) : isAdmin ? (
        <UsersPanel />
      ) : (
        <Empty title={USERS.forbidden} />
      )}
    </Page>
  );
}

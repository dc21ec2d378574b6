import { useParams } from "react-router";
import { useMe } from "../../api/useMe.ts";
import { SETTINGS, USERS } from "../../i18n/settings.ts";
import { Denied } from "../../ui/Denied.tsx";
import { Page } from "../../ui/Page.tsx";
import { type TabLink, TabNav } from "../../ui/TabNav.tsx";
import { TokensPanel } from "./TokensPanel.tsx";
import { UsersPanel } from "./UsersPanel.tsx";

const TABS: readonly TabLink[] = [
  { key: "tokens", name: SETTINGS.tabs.tokens, to: "/settings/tokens" },
  { key: "users", name: SETTINGS.tabs.users, to: "/settings/users" },
];

/** Tokens of the user, and for administrators all users with their roles. */
export function SettingsPage() {
  const { tab = "tokens" } = useParams();
  const me = useMe();
  const isAdmin = me?.isAdmin === true;
  return (
    <Page title={SETTINGS.title}>
      <TabNav name={SETTINGS.tabList} tabs={TABS} active={tab} />
      {tab !== "users" ? (
        <TokensPanel isAdmin={isAdmin} />
      ) : isAdmin ? (
        <UsersPanel />
      ) : (
        <Denied right={USERS.forbidden} />
      )}
    </Page>
  );
}

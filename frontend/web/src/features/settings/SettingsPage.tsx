import { Suspense } from "react";
import { useParams } from "react-router";
import { useMe } from "../../api/useMe.ts";
import { NOTIFICATIONS } from "../../i18n/notifications.ts";
import { SETTINGS, USERS } from "../../i18n/settings.ts";
import { Denied } from "../../ui/Denied.tsx";
import { lazyPart } from "../../ui/lazyPart.tsx";
import { Page } from "../../ui/Page.tsx";
import { Loading } from "../../ui/States.tsx";
import { type TabLink, TabNav } from "../../ui/TabNav.tsx";
import { TokensPanel } from "./TokensPanel.tsx";
import { UsersPanel } from "./UsersPanel.tsx";

/** Loaded when it is opened: few people change how a scheduler works. */
const ShardsTab = lazyPart(async () => (await import("./shards/ShardsTab.tsx")).ShardsTab);
const PoliciesTab = lazyPart(async () => (await import("./PoliciesPanel.tsx")).PoliciesPanel);
const PricesTab = lazyPart(async () => (await import("./PricesPanel.tsx")).PricesPanel);
const NotificationsTab = lazyPart(
  async () => (await import("./NotificationsPanel.tsx")).NotificationsPanel,
);

const TABS: readonly TabLink[] = [
  { key: "tokens", name: SETTINGS.tabs.tokens, to: "/settings/tokens" },
  { key: "users", name: SETTINGS.tabs.users, to: "/settings/users" },
  { key: "shards", name: SETTINGS.tabs.shards, to: "/settings/shards" },
  { key: "policies", name: SETTINGS.tabs.policies, to: "/settings/policies" },
  { key: "prices", name: SETTINGS.tabs.prices, to: "/settings/prices" },
  { key: "notifications", name: SETTINGS.tabs.notifications, to: "/settings/notifications" },
];

/** Tokens of the user, the shards, the policies, the prices, and for administrators webhooks and all users with their roles. */
export function SettingsPage() {
  const { tab = "tokens", name } = useParams();
  const me = useMe();
  const isAdmin = me?.isAdmin === true;
  return (
    <Page title={SETTINGS.title}>
      <TabNav name={SETTINGS.tabList} tabs={TABS} active={tab} />
      {tab === "shards" ? (
        <Suspense fallback={<Loading rows={10} />}>
          <ShardsTab name={name} />
        </Suspense>
      ) : tab === "policies" ? (
        <Suspense fallback={<Loading />}>
          <PoliciesTab isAdmin={isAdmin} />
        </Suspense>
      ) : tab === "prices" ? (
        <Suspense fallback={<Loading />}>
          <PricesTab isAdmin={isAdmin} />
        </Suspense>
      ) : tab === "notifications" ? (
        isAdmin ? (
          <Suspense fallback={<Loading />}>
            <NotificationsTab />
          </Suspense>
        ) : (
          <Denied right={NOTIFICATIONS.forbidden} />
        )
      ) : tab !== "users" ? (
        <TokensPanel isAdmin={isAdmin} />
      ) : isAdmin ? (
        <UsersPanel />
      ) : (
        <Denied right={USERS.forbidden} />
      )}
    </Page>
  );
}

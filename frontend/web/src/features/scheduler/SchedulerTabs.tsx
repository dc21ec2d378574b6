import { SCHEDULER } from "../../i18n/scheduler.ts";
import { type TabLink, TabNav } from "../../ui/TabNav.tsx";

const TABS: readonly TabLink[] = [
  { key: "sessions", name: SCHEDULER.tabs.sessions, to: "/scheduler" },
  { key: "evictions", name: SCHEDULER.tabs.evictions, to: "/scheduler/evictions" },
  { key: "order", name: SCHEDULER.tabs.order, to: "/scheduler/order" },
  { key: "binds", name: SCHEDULER.tabs.binds, to: "/scheduler/binds" },
];

/** Links between the lists of the scheduler. */
export function SchedulerTabs({ active }: { active: string }) {
  return <TabNav name={SCHEDULER.tabList} tabs={TABS} active={active} />;
}

import { TOPOLOGY } from "../i18n/topology.ts";
import { type TabLink, TabNav } from "./TabNav.tsx";

const TABS: readonly TabLink[] = [
  { key: "grid", name: TOPOLOGY.tabs.grid, to: "/nodes" },
  { key: "topology", name: TOPOLOGY.tabs.topology, to: "/topology" },
];

/** Links between the ways to look at the nodes. */
export function NodesTabs({ active }: { active: string }) {
  return <TabNav name={TOPOLOGY.tabList} tabs={TABS} active={active} />;
}

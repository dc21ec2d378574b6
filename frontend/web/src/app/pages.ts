import {
  IconActivity,
  IconBinaryTree2,
  IconChartBar,
  IconCpu,
  IconFlask,
  IconGitPullRequest,
  IconHistory,
  IconLayoutDashboard,
  IconSettings,
  IconStack2,
} from "@tabler/icons-react";
import { PAGES as NAMES } from "../i18n/app.ts";

/** The pages of the navigation, in its order. */
export const PAGES = [
  { to: "/", name: NAMES.overview, icon: IconLayoutDashboard },
  { to: "/queues", name: NAMES.queues, icon: IconBinaryTree2 },
  { to: "/workloads", name: NAMES.workloads, icon: IconStack2 },
  { to: "/nodes", name: NAMES.nodes, icon: IconCpu },
  { to: "/scheduler", name: NAMES.scheduler, icon: IconActivity },
  { to: "/simulate", name: NAMES.simulate, icon: IconFlask },
  { to: "/changes", name: NAMES.changes, icon: IconGitPullRequest },
  { to: "/usage", name: NAMES.usage, icon: IconChartBar },
  { to: "/audit", name: NAMES.audit, icon: IconHistory },
  { to: "/settings", name: NAMES.settings, icon: IconSettings },
] as const;

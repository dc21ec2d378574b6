import {
  IconActivity,
  IconBinaryTree2,
  IconCpu,
  IconGitPullRequest,
  IconHistory,
  IconLayoutDashboard,
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
  { to: "/changes", name: NAMES.changes, icon: IconGitPullRequest },
  { to: "/audit", name: NAMES.audit, icon: IconHistory },
] as const;

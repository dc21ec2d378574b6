import {
  IconActivity,
  IconBinaryTree2,
  IconChevronsLeft,
  IconChevronsRight,
  IconCpu,
  IconGitPullRequest,
  IconHistory,
  IconLayoutDashboard,
  IconStack2,
} from "@tabler/icons-react";
import { Link, NavLink, Outlet, useLocation, useNavigation } from "react-router";
import { DraftTray } from "../editing/DraftTray.tsx";
import { PAGES as PAGE_NAMES, SHELL } from "../i18n/app.ts";
import { Boundary } from "../ui/Boundary.tsx";
import { usePreferences } from "../ui/preferences.ts";
import { HealthBanner } from "./HealthBanner.tsx";
import { LivePill } from "./LivePill.tsx";
import { OfflineBanner } from "./OfflineBanner.tsx";
import styles from "./Shell.module.css";
import { ShortcutHelp } from "./ShortcutHelp.tsx";
import { UserMenu } from "./UserMenu.tsx";
import { useShortcuts } from "./useShortcuts.ts";

const PAGES = [
  { to: "/", name: PAGE_NAMES.overview, icon: IconLayoutDashboard },
  { to: "/queues", name: PAGE_NAMES.queues, icon: IconBinaryTree2 },
  { to: "/workloads", name: PAGE_NAMES.workloads, icon: IconStack2 },
  { to: "/nodes", name: PAGE_NAMES.nodes, icon: IconCpu },
  { to: "/scheduler", name: PAGE_NAMES.scheduler, icon: IconActivity },
  { to: "/changes", name: PAGE_NAMES.changes, icon: IconGitPullRequest },
  { to: "/audit", name: PAGE_NAMES.audit, icon: IconHistory },
] as const;

export function Shell() {
  const { navFolded, set } = usePreferences();
  const help = useShortcuts();
  const { pathname } = useLocation();
  const isLoading = useNavigation().state === "loading";
  return (
    <div className={`${styles.shell} ${navFolded ? styles.folded : ""}`}>
      <a className={styles.skip} href="#main">
        {SHELL.skip}
      </a>
      <nav className={styles.nav} aria-label={SHELL.navigation}>
        <Link to="/" className={styles.brand} aria-label={SHELL.home}>
          <img src={`${import.meta.env.BASE_URL}favicon.svg`} alt="" />
          <span className={styles.word}>{SHELL.product}</span>
        </Link>
        {PAGES.map(({ to, name, icon: Icon }) => (
          <NavLink
            key={to}
            to={to}
            end={to === "/"}
            className={styles.link ?? ""}
            title={navFolded ? name : undefined}
          >
            <Icon size={18} stroke={1.7} aria-hidden />
            <span className={styles.word}>{name}</span>
          </NavLink>
        ))}
        <button
          type="button"
          className={`${styles.link} ${styles.fold}`}
          aria-label={navFolded ? SHELL.expandNavigation : SHELL.collapseNavigation}
          onClick={() => set({ navFolded: !navFolded })}
        >
          {navFolded ? <IconChevronsRight size={18} /> : <IconChevronsLeft size={18} />}
          <span className={styles.word}>{SHELL.collapse}</span>
        </button>
      </nav>
      <section className={styles.top} aria-label={SHELL.statusAndPreferences}>
        <LivePill />
        <div className={styles.spacer} />
        <UserMenu onHelp={help.open} />
      </section>
      <main id="main" className={styles.main} tabIndex={-1} aria-busy={isLoading}>
        <OfflineBanner />
        <HealthBanner />
        <Boundary key={pathname}>
          <Outlet />
        </Boundary>
      </main>
      <div className={styles.tray}>
        <DraftTray />
      </div>
      <ShortcutHelp opened={help.opened} onClose={help.close} />
    </div>
  );
}

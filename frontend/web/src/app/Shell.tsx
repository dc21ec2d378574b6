import {
  IconActivity,
  IconBinaryTree2,
  IconChevronsLeft,
  IconChevronsRight,
  IconCpu,
  IconLayoutDashboard,
  IconStack2,
} from "@tabler/icons-react";
import { useEffect } from "react";
import { Link, NavLink, Outlet, useLocation, useNavigation } from "react-router";
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
  { to: "/", word: "Overview", icon: IconLayoutDashboard },
  { to: "/queues", word: "Queues", icon: IconBinaryTree2 },
  { to: "/workloads", word: "Workloads", icon: IconStack2 },
  { to: "/nodes", word: "Nodes", icon: IconCpu },
  { to: "/scheduler", word: "Scheduler", icon: IconActivity },
] as const;

export function Shell() {
  const { navFolded, set } = usePreferences();
  const help = useShortcuts();
  const { pathname } = useLocation();
  const isLoading = useNavigation().state === "loading";
  useEffect(() => {
    const page = PAGES.find(({ to }) => (to === "/" ? pathname === "/" : pathname.startsWith(to)));
    document.title = `${page?.word ?? "Not found"} · kaiweb`;
  }, [pathname]);
  return (
    <div className={`${styles.shell} ${navFolded ? styles.folded : ""}`}>
      <a className={styles.skip} href="#main">
        Skip to content
      </a>
      <nav className={styles.nav} aria-label="Pages">
        <Link to="/" className={styles.brand} aria-label="kaiweb, overview">
          <img src={`${import.meta.env.BASE_URL}favicon.svg`} alt="" />
          <span className={styles.word}>kaiweb</span>
        </Link>
        {PAGES.map(({ to, word, icon: Icon }) => (
          <NavLink
            key={to}
            to={to}
            end={to === "/"}
            className={styles.link ?? ""}
            title={navFolded ? word : undefined}
          >
            <Icon size={18} stroke={1.7} aria-hidden />
            <span className={styles.word}>{word}</span>
          </NavLink>
        ))}
        <button
          type="button"
          className={`${styles.link} ${styles.fold}`}
          aria-label={navFolded ? "Unfold the navigation" : "Fold the navigation"}
          onClick={() => set({ navFolded: !navFolded })}
        >
          {navFolded ? <IconChevronsRight size={18} /> : <IconChevronsLeft size={18} />}
          <span className={styles.word}>Fold</span>
        </button>
      </nav>
      <section className={styles.top} aria-label="Status and preferences">
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
      <ShortcutHelp opened={help.opened} onClose={help.close} />
    </div>
  );
}

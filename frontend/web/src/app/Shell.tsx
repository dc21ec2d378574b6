import { IconChevronsLeft, IconChevronsRight, IconSearch } from "@tabler/icons-react";
import { Suspense, useEffect, useRef, useState } from "react";
import { Link, NavLink, Outlet, useLocation, useNavigation } from "react-router";
import { DraftTray } from "../editing/DraftTray.tsx";
import { PALETTE, SHELL } from "../i18n/app.ts";
import { showMemoryIn, showUtc } from "../i18n/numbers.ts";
import { Boundary } from "../ui/Boundary.tsx";
import { lazyPart } from "../ui/lazyPart.tsx";
import { usePreferences } from "../ui/preferences.ts";
import { HealthBanner } from "./HealthBanner.tsx";
import { LivePill } from "./LivePill.tsx";
import { OfflineBanner } from "./OfflineBanner.tsx";
import { PAGES } from "./pages.ts";
import styles from "./Shell.module.css";
import { ShortcutHelp } from "./ShortcutHelp.tsx";
import { UserMenu } from "./UserMenu.tsx";
import { usePageFocus } from "./usePageFocus.ts";
import { useShortcuts } from "./useShortcuts.ts";

/** Loaded when they are first opened, because the first paint does not need them. */
const Palette = lazyPart(async () => (await import("./palette/Palette.tsx")).Palette);
const UndoDialog = lazyPart(async () => (await import("./UndoDialog.tsx")).UndoDialog);

export function Shell() {
  const { navFolded, utc, memoryUnit, set } = usePreferences();
  showUtc(utc);
  showMemoryIn(memoryUnit);
  const [isSearching, setSearching] = useState(false);
  const [isUndoing, setUndoing] = useState(false);
  const help = useShortcuts(
    () => setSearching(true),
    () => setUndoing(true),
  );
  const { pathname } = useLocation();
  const nav = useRef<HTMLElement>(null);
  // On a phone the navigation scrolls sideways.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the current link changes with the path
  useEffect(() => {
    nav.current
      ?.querySelector('[aria-current="page"]')
      ?.scrollIntoView?.({ inline: "nearest", block: "nearest" });
  }, [pathname]);
  const main = useRef<HTMLElement>(null);
  const onLeave = usePageFocus(main);
  const isLoading = useNavigation().state === "loading";
  return (
    <div className={`${styles.shell} ${navFolded ? styles.folded : ""}`}>
      <a className={styles.skip} href="#main">
        {SHELL.skip}
      </a>
      <nav ref={nav} className={styles.nav} aria-label={SHELL.navigation}>
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
        <button
          type="button"
          className={styles.search}
          aria-label={PALETTE.open}
          aria-keyshortcuts="Control+K Meta+K"
          onClick={() => setSearching(true)}
        >
          <IconSearch size={15} aria-hidden />
          <span className={styles.searchText}>{PALETTE.button}</span>
          <kbd className={styles.searchText}>{PALETTE.keys}</kbd>
        </button>
        <UserMenu onHelp={help.open} />
      </section>
      <main
        id="main"
        ref={main}
        className={styles.main}
        tabIndex={-1}
        aria-busy={isLoading}
        onClickCapture={onLeave}
      >
        <OfflineBanner />
        <HealthBanner />
        <Boundary key={`${pathname} ${utc} ${memoryUnit}`}>
          <Outlet />
        </Boundary>
      </main>
      <div className={styles.tray}>
        <DraftTray />
      </div>
      {isSearching && (
        <Suspense>
          <Palette onClose={() => setSearching(false)} />
        </Suspense>
      )}
      {isUndoing && (
        <Suspense>
          <UndoDialog onClose={() => setUndoing(false)} />
        </Suspense>
      )}
      <ShortcutHelp opened={help.opened} onClose={help.close} />
    </div>
  );
}

import { useLiveStatus } from "../live/react.tsx";
import { useNow } from "../ui/now.ts";
import styles from "./Shell.module.css";

const OLD_AFTER_MS = 60_000;

/** Says plainly that the numbers are old, once a short interruption has become a long one. */
export function OfflineBanner() {
  const { link, heardAt } = useLiveStatus();
  const now = useNow();
  if (link === "expired") {
    const next = encodeURIComponent(location.pathname + location.search);
    return (
      <div className={styles.banner} role="alert">
        Your session has ended. <a href={`/login?next=${next}`}>Sign in again</a> to go on; what you
        see is old.
      </div>
    );
  }
  if (link === "open" || heardAt === null || now - heardAt < OLD_AFTER_MS) return null;
  return (
    <div className={styles.banner} role="alert">
      No connection for more than a minute: what you see is old.
    </div>
  );
}

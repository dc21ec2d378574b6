import { BANNER } from "../i18n/app.ts";
import { useLiveStatus } from "../live/react.tsx";
import { useNow } from "../ui/now.ts";
import { RichText } from "../ui/RichText.tsx";
import styles from "./Shell.module.css";

const OLD_AFTER_MS = 60_000;

/** Warns that the data may be out of date once the connection has been lost for a minute. */
export function OfflineBanner() {
  const { link, heardAt } = useLiveStatus();
  const now = useNow();
  if (link === "expired") {
    const next = encodeURIComponent(location.pathname + location.search);
    return (
      <div className={styles.banner} role="alert">
        <RichText
          text={BANNER.signedOut}
          parts={{ link: <a href={`/login?next=${next}`}>{BANNER.signIn}</a> }}
        />
      </div>
    );
  }
  if (link === "open" || heardAt === null || now - heardAt < OLD_AFTER_MS) return null;
  return (
    <div className={styles.banner} role="alert">
      {BANNER.offline}
    </div>
  );
}

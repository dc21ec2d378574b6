import { Link } from "react-router";
import { BANNER, OFFLINE } from "../i18n/app.ts";
import { span } from "../i18n/numbers.ts";
import { useLiveStatus } from "../live/react.tsx";
import { RichText } from "../ui/RichText.tsx";
import { useStale } from "../ui/useStale.ts";
import styles from "./Shell.module.css";

/** Says that the data is out of date, and why: no connection, or a server that is behind the cluster. */
export function OfflineBanner() {
  const { link } = useLiveStatus();
  const ageMs = useStale();
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
  if (ageMs === null) return null;
  return (
    <div className={styles.banner} role="alert">
      {link === "open" ? BANNER.behind(span(ageMs)) : BANNER.offline}{" "}
      <Link to="/offline">{OFFLINE.details}</Link>
    </div>
  );
}

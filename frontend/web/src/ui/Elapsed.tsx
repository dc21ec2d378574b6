import { dateTime, span } from "../i18n/numbers.ts";
import { useNow } from "./now.ts";

/** How long ago something happened; the absolute time is in the title. */
export function Elapsed({ since }: { since: string }) {
  const now = useNow();
  return (
    <time dateTime={since} title={dateTime(since)}>
      {span(now - Date.parse(since))}
    </time>
  );
}

import { dateTime, span } from "../model/units.ts";
import { useNow } from "./now.ts";

/** How long ago something was; the absolute time is in the title and for screen readers. */
export function Elapsed({ since }: { since: string }) {
  const now = useNow();
  return (
    <time dateTime={since} title={dateTime(since)}>
      {span(now - Date.parse(since))}
    </time>
  );
}

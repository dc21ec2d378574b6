import { useMe } from "../api/useMe.ts";
import { DENIED } from "../i18n/app.ts";
import { ACCESS } from "../i18n/queue.ts";
import { Empty } from "./States.tsx";

/** Says which right is missing, what the user has instead, and who can give it. */
export function Denied({ right }: { right: string }) {
  const me = useMe();
  const roles = (me?.roles ?? [])
    .map(({ role, subtree }) => DENIED.role(ACCESS.roles[role] ?? role, subtree))
    .join(", ");
  return (
    <Empty title={DENIED.title}>
      <p>{DENIED.missing(right)}</p>
      <p>
        {DENIED.whoCan(me?.admins ?? [])} {DENIED.where}
      </p>
      <p>{DENIED.yours(roles)}</p>
    </Empty>
  );
}

import { useMe } from "../api/useMe.ts";
import { DENIED } from "../i18n/app.ts";
import { ACCESS } from "../i18n/queue.ts";
import { Fact, FactList } from "./FactList.tsx";
import { Empty } from "./States.tsx";

/** Says which right is missing, what the user has instead, and who can give it. */
export function Denied({ right }: { right: string }) {
  const me = useMe();
  return (
    <>
      <Empty title={DENIED.title}>
        {DENIED.whoCan(me?.admins ?? [])} {DENIED.where}
      </Empty>
      <FactList>
        <Fact name={DENIED.missing}>{right}</Fact>
        <Fact name={DENIED.yours}>
          {(me?.roles ?? [])
            .map(({ role, subtree }) => DENIED.role(ACCESS.roles[role] ?? role, subtree))
            .join(", ")}
        </Fact>
      </FactList>
    </>
  );
}

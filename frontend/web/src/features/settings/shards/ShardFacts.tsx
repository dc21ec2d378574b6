import { SHARDS } from "../../../i18n/shards.ts";
import type { Shard } from "../../../model/rows.ts";
import { openCondition } from "../../../model/shards.ts";
import { Badge } from "../../../ui/StateBadge.tsx";

/** Which nodes a shard has. */
export function Nodes({ pool }: { pool: string }) {
  return pool === "" ? SHARDS.withoutPool : SHARDS.pool(pool);
}

/** Whether a shard works with its settings; null stands for one without an object. */
export function ShardState({ shard }: { shard: Shard | null }) {
  if (shard === null) return <Badge tone="neutral">{SHARDS.byDefault}</Badge>;
  if (shard.problem !== "") return <Badge tone="bad">{SHARDS.refused}</Badge>;
  const open = openCondition(shard);
  if (open === undefined) return <Badge tone="good">{SHARDS.ready}</Badge>;
  return (
    <span title={`${open.type}: ${open.message || open.reason}`}>
      <Badge tone="warn">{SHARDS.waiting}</Badge>
    </span>
  );
}

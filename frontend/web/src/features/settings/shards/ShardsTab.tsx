import { Button } from "@mantine/core";
import { useState } from "react";
import { Link, useNavigate } from "react-router";
import { useShards } from "../../../api/shards.ts";
import { useMe } from "../../../api/useMe.ts";
import { SHARDS } from "../../../i18n/shards.ts";
import { DEFAULT_SHARD, shardsByName } from "../../../model/shards.ts";
import { DataTable } from "../../../ui/DataTable.tsx";
import { Panel } from "../../../ui/Panel.tsx";
import { shardPath } from "../../../ui/paths.ts";
import { QueryResult } from "../../../ui/QueryResult.tsx";
import { Empty } from "../../../ui/States.tsx";
import { useStale } from "../../../ui/useStale.ts";
import { NewShardDialog } from "./NewShardDialog.tsx";
import { Nodes, ShardState } from "./ShardFacts.tsx";
import { ShardForm } from "./ShardForm.tsx";

/** All shards, and what the scheduler of the chosen one does. */
export function ShardsTab({ name = DEFAULT_SHARD }: { name: string | undefined }) {
  const shards = useShards();
  const navigate = useNavigate();
  const [isCreating, setCreating] = useState(false);
  const me = useMe();
  const isStale = useStale() !== null;
  const locked = me?.isAdmin !== true ? SHARDS.adminsOnly : isStale ? SHARDS.stale : null;
  return (
    <QueryResult query={shards} rows={8}>
      {({ items }) => {
        const byName = shardsByName(items);
        const chosen = byName.get(name);
        return (
          <>
            <Panel
              title={SHARDS.title}
              note={SHARDS.note}
              tools={
                <Button size="xs" disabled={locked !== null} onClick={() => setCreating(true)}>
                  {SHARDS.create}
                </Button>
              }
              flush
            >
              <DataTable name={SHARDS.table} columns={SHARDS.columns}>
                {[...byName].map(([each, shard]) => (
                  <tr key={each}>
                    <th scope="row">
                      <Link to={shardPath(each)} aria-current={each === name}>
                        {each}
                      </Link>
                    </th>
                    <td>
                      <Nodes pool={shard?.partitionLabelValue ?? ""} />
                    </td>
                    <td>
                      <ShardState shard={shard} />
                    </td>
                  </tr>
                ))}
              </DataTable>
            </Panel>
            {chosen === undefined ? (
              <Empty title={SHARDS.missingTitle(name)}>{SHARDS.missing}</Empty>
            ) : (
              <ShardForm key={name} name={name} shard={chosen} locked={locked} />
            )}
            {isCreating && (
              <NewShardDialog
                onCreated={(created) => {
                  setCreating(false);
                  void navigate(shardPath(created));
                }}
                onClose={() => setCreating(false)}
              />
            )}
          </>
        );
      }}
    </QueryResult>
  );
}

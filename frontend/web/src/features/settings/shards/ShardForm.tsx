import { Button, Select } from "@mantine/core";
import { useState } from "react";
import { type ShardWrite, useShardSettings } from "../../../api/shards.ts";
import { dateTime } from "../../../i18n/numbers.ts";
import { SHARD, SHARDS } from "../../../i18n/shards.ts";
import { NONE } from "../../../i18n/ui.ts";
import type { Shard, ShardSettings } from "../../../model/rows.ts";
import {
  DEFAULT_SHARD,
  fieldAt,
  fieldCount,
  type SpecPatch,
  STRATEGIES,
  strategyOf,
  withField,
  withoutNulls,
} from "../../../model/shards.ts";
import { Fact, FactList } from "../../../ui/FactList.tsx";
import { Panel } from "../../../ui/Panel.tsx";
import { QueryResult } from "../../../ui/QueryResult.tsx";
import { Failure } from "../../../ui/States.tsx";
import { DeleteShardDialog } from "./DeleteShardDialog.tsx";
import { NumberField } from "./NumberField.tsx";
import { ReviewDialog } from "./ReviewDialog.tsx";
import { ActionTable, type Edits, OptionTable, PluginTable } from "./SettingTables.tsx";
import { Nodes, ShardState } from "./ShardFacts.tsx";
import styles from "./Shards.module.css";
import { SpecDialog } from "./SpecDialog.tsx";

type Props = { name: string; shard: Shard | null; locked: string | null };
/** Some edited fields, or a whole spec. */
type Reviewed = { readonly kind: "patch" | "replace"; readonly spec: SpecPatch };

/** What one scheduler does. Edits are collected, and written together after a look at their difference. */
export function ShardForm({ name, shard, locked }: Props) {
  const settings = useShardSettings(name);
  const [patch, setPatch] = useState<SpecPatch>({});
  const [reviewed, setReviewed] = useState<Reviewed | null>(null);
  const [opened, setOpened] = useState<"json" | "delete" | null>(null);
  const edits: Edits = {
    isLocked: locked !== null,
    at: (path) => fieldAt(patch, path),
    set: (path, value) => setPatch((before) => withField(before, path, value)),
  };
  const changes = fieldCount(patch);
  return (
    <>
      <Panel
        title={name}
        note={locked ?? undefined}
        tools={
          locked === null && (
            <>
              <Button size="compact-sm" variant="default" onClick={() => setOpened("json")}>
                {SHARD.json}
              </Button>
              {shard !== null && (
                <Button size="compact-sm" variant="default" onClick={() => setOpened("delete")}>
                  {SHARD.remove}
                </Button>
              )}
            </>
          )
        }
      >
        <FactList>
          <Fact name={SHARD.nodes}>
            <Nodes pool={shard?.partitionLabelValue ?? ""} />
          </Fact>
          <Fact name={SHARD.state}>
            <ShardState shard={shard} />
          </Fact>
          <Fact name={SHARD.created}>{shard?.createdAt ? dateTime(shard.createdAt) : NONE}</Fact>
        </FactList>
        {shard === null && <p>{SHARDS.withoutObject}</p>}
        {shard !== null && shard.problem !== "" && (
          <Failure title={SHARDS.problemTitle} detail={shard.problem} />
        )}
        <General shard={shard} edits={edits} />
      </Panel>
      <QueryResult query={settings} rows={10}>
        {(data) => <Tables settings={data} edits={edits} />}
      </QueryResult>
      {changes > 0 && (
        <div className={styles.bar} role="group" aria-label={SHARD.changes(changes)}>
          <span role="status">{SHARD.changes(changes)}</span>
          <Button variant="default" onClick={() => setPatch({})}>
            {SHARD.discard}
          </Button>
          <Button
            disabled={locked !== null}
            onClick={() => setReviewed({ kind: "patch", spec: patch })}
          >
            {SHARD.review}
          </Button>
        </div>
      )}
      {opened === "json" && (
        <SpecDialog
          name={name}
          spec={shard?.spec ?? {}}
          onReview={(spec) => {
            setOpened(null);
            setReviewed({ kind: "replace", spec });
          }}
          onClose={() => setOpened(null)}
        />
      )}
      {opened === "delete" && shard !== null && (
        <DeleteShardDialog
          shard={shard}
          isDefault={name === DEFAULT_SHARD}
          onClose={() => setOpened(null)}
        />
      )}
      {reviewed !== null && (
        <ReviewDialog
          write={writeOf(name, shard, reviewed)}
          before={shard?.spec ?? null}
          onSaved={() => {
            setReviewed(null);
            setPatch({});
          }}
          onClose={() => setReviewed(null)}
        />
      )}
    </>
  );
}

function writeOf(name: string, shard: Shard | null, { kind, spec }: Reviewed): ShardWrite {
  if (shard === null) return { kind: "create", name, spec: withoutNulls(spec) };
  return { kind, name, spec, etag: shard.etag };
}

function General({ shard, edits }: { shard: Shard | null; edits: Edits }) {
  const spec = shard?.spec ?? {};
  const strategy = (kind: "gpu" | "cpu", label: string) => {
    const path = ["placementStrategy", kind];
    const present = strategyOf(spec, kind);
    return (
      <Select
        size="xs"
        label={label}
        data={STRATEGIES.map((value) => ({ value, label: SHARD.strategies[value] }))}
        value={String(edits.at(path) ?? present)}
        allowDeselect={false}
        disabled={edits.isLocked}
        onChange={(value) => edits.set(path, value === present ? undefined : value)}
      />
    );
  };
  const kValue = Number(spec.kValue ?? 1);
  return (
    <fieldset className={styles.general}>
      <legend>{SHARD.general}</legend>
      {strategy("gpu", SHARD.gpuStrategy)}
      {strategy("cpu", SHARD.cpuStrategy)}
      <NumberField
        label={SHARD.kValue}
        description={SHARD.kValueHint}
        value={kValue}
        edited={edits.at(["kValue"])}
        disabled={edits.isLocked}
        onChange={(value) => edits.set(["kValue"], value === kValue ? undefined : value)}
      />
    </fieldset>
  );
}

function Tables({ settings, edits }: { settings: ShardSettings; edits: Edits }) {
  return (
    <div className={styles.columns}>
      <div className={styles.column}>
        <Panel title={SHARD.actions} note={SHARD.actionsNote} flush>
          <ActionTable settings={settings} edits={edits} />
        </Panel>
        <Panel title={SHARD.options} note={SHARD.optionsNote} flush>
          <OptionTable settings={settings} edits={edits} />
        </Panel>
      </div>
      <Panel title={SHARD.plugins} note={SHARD.pluginsNote} flush>
        <PluginTable settings={settings} edits={edits} />
      </Panel>
    </div>
  );
}

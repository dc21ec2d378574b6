import { Button, Select, Switch, TextInput } from "@mantine/core";
import { ACTION_TEXTS, PLUGIN_TEXTS, SHARD } from "../../../i18n/shards.ts";
import { NONE } from "../../../i18n/ui.ts";
import type { OptionSetting, ShardSettings } from "../../../model/rows.ts";
import { actionsInOrder, optionText } from "../../../model/shards.ts";
import { DataTable } from "../../../ui/DataTable.tsx";
import { Badge } from "../../../ui/StateBadge.tsx";
import styles from "./Shards.module.css";

/** The edits of a shard that are not saved yet. */
export type Edits = {
  readonly isLocked: boolean;
  /** The value that the edits give a field of the spec; undefined if they leave it. */
  readonly at: (path: readonly string[]) => unknown;
  /** Edit a field; undefined takes the edit back, null removes the field. */
  readonly set: (path: readonly string[], value: unknown) => void;
};
type Props = { settings: ShardSettings; edits: Edits };

export function ActionTable({ settings, edits }: Props) {
  return (
    <DataTable name={SHARD.actions} columns={SHARD.actionColumns}>
      {actionsInOrder(settings).map(({ name, enabled, queueDepth }) => (
        <tr key={name}>
          <th scope="row">{name}</th>
          <td className={styles.text}>{ACTION_TEXTS[name]}</td>
          <td>
            <Runs path={["actions", name, "enabled"]} name={name} isOn={enabled} edits={edits} />
          </td>
          <td className={styles.depth}>
            <Depth name={name} depth={queueDepth} edits={edits} />
          </td>
        </tr>
      ))}
    </DataTable>
  );
}

function Depth({ name, depth, edits }: { name: string; depth: number | null; edits: Edits }) {
  const path = ["queueDepthPerAction", name];
  const edited = edits.at(path);
  const shown = edited === undefined ? depth : edited;
  return (
    <TextInput
      size="xs"
      aria-label={SHARD.depth(name)}
      inputMode="numeric"
      placeholder={SHARD.depthAll}
      disabled={edits.isLocked}
      value={shown === null ? "" : String(shown)}
      onChange={(event) => {
        const digits = event.currentTarget.value.replace(/\D/g, "");
        const next = digits === "" ? null : Number(digits);
        edits.set(path, next === depth ? undefined : next);
      }}
    />
  );
}

export function PluginTable({ settings, edits }: Props) {
  return (
    <DataTable name={SHARD.plugins} columns={SHARD.pluginColumns}>
      {settings.plugins.map((plugin) => (
        <tr key={plugin.name}>
          <th scope="row">{plugin.name}</th>
          <td className={styles.text}>{PLUGIN_TEXTS[plugin.name]}</td>
          <td>
            <Runs
              path={["plugins", plugin.name, "enabled"]}
              name={plugin.name}
              isOn={plugin.enabled}
              edits={edits}
            />
          </td>
          <td>{plugin.priority}</td>
          <td>{argumentsText(plugin.arguments)}</td>
        </tr>
      ))}
    </DataTable>
  );
}

function argumentsText(values: Readonly<Record<string, string>>): string {
  const texts = Object.entries(values).map(([key, value]) => `${key}=${value}`);
  return texts.length === 0 ? NONE : texts.join(", ");
}

type RunsProps = { path: readonly string[]; name: string; isOn: boolean; edits: Edits };

function Runs({ path, name, isOn, edits }: RunsProps) {
  const edited = edits.at(path);
  return (
    <span className={styles.runs}>
      <Switch
        aria-label={SHARD.runs(name)}
        checked={(edited ?? isOn) === true}
        disabled={edits.isLocked}
        onChange={(event) => {
          const next = event.currentTarget.checked;
          edits.set(path, next === isOn ? undefined : next);
        }}
      />
      {edited !== undefined && <Badge tone="accent">{SHARD.edited}</Badge>}
    </span>
  );
}

export function OptionTable({ settings, edits }: Props) {
  return (
    <DataTable name={SHARD.options} columns={SHARD.optionColumns}>
      {settings.options.map((option) => (
        <OptionRow key={option.name} option={option} edits={edits} />
      ))}
    </DataTable>
  );
}

function OptionRow({ option, edits }: { option: OptionSetting; edits: Edits }) {
  const { name, stated } = option;
  const path = ["args", name];
  const edited = edits.at(path);
  const byDefault = optionText({ ...option, value: option.default });
  const present = optionText(option);
  // Null removes the option from the shard, which then has the default.
  const shown = edited === undefined ? present : edited === null ? byDefault : String(edited);
  const change = (text: string) => edits.set(path, text === present ? undefined : text);
  const isReset = edited === null;
  return (
    <tr>
      <th scope="row">{name}</th>
      <td className={styles.value}>
        <OptionField option={option} text={shown} isLocked={edits.isLocked} onChange={change} />
      </td>
      <td>{byDefault}</td>
      <td>
        <span className={styles.runs}>
          {edited !== undefined ? (
            <Badge tone="accent">{SHARD.edited}</Badge>
          ) : stated ? (
            SHARD.isStated
          ) : (
            SHARD.isDefault
          )}
          {stated && !isReset && !edits.isLocked && (
            <Button
              size="compact-xs"
              variant="default"
              aria-label={SHARD.resetOf(name)}
              onClick={() => edits.set(path, null)}
            >
              {SHARD.reset}
            </Button>
          )}
        </span>
      </td>
    </tr>
  );
}

type FieldProps = {
  option: OptionSetting;
  text: string;
  isLocked: boolean;
  onChange: (text: string) => void;
};

function OptionField({ option, text, isLocked, onChange }: FieldProps) {
  if (option.kind === "boolean") {
    return (
      <Switch
        aria-label={option.name}
        checked={text === "true"}
        disabled={isLocked}
        onChange={(event) => onChange(String(event.currentTarget.checked))}
      />
    );
  }
  if (option.choices !== null) {
    return (
      <Select
        size="xs"
        aria-label={option.name}
        data={[...option.choices]}
        value={text}
        allowDeselect={false}
        disabled={isLocked}
        onChange={(value) => value !== null && onChange(value)}
      />
    );
  }
  return (
    <TextInput
      size="xs"
      aria-label={option.name}
      value={text}
      disabled={isLocked}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  );
}

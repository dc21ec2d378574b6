import { Select, Switch, TextInput } from "@mantine/core";
import { useState } from "react";
import { createToken } from "../../api/access.ts";
import { useMe } from "../../api/useMe.ts";
import { TOKENS } from "../../i18n/settings.ts";
import type { Scope, TokenCreated } from "../../model/rows.ts";
import { IN_DIALOG } from "../../ui/Dialog.tsx";
import { WriteForm } from "../../ui/WriteForm.tsx";
import styles from "./Settings.module.css";
import { SubtreeSelect } from "./SubtreeSelect.tsx";

const DAY_MS = 86_400_000;
const SCOPES: readonly Scope[] = ["read", "queues:write", "workloads:write", "simulate"];
// Without effect for anybody but an admin.
const ADMIN_SCOPES: readonly Scope[] = ["apply:force", "admin"];

type Props = { onCreated: (token: TokenCreated) => void; onClose: () => void };

export function NewTokenDialog({ onCreated, onClose }: Props) {
  const me = useMe();
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<readonly Scope[]>(["read"]);
  const [subtree, setSubtree] = useState<string | null>(null);
  const [days, setDays] = useState("30");
  const [networks, setNetworks] = useState("");
  const grantableScopes = me?.isAdmin === true ? [...SCOPES, ...ADMIN_SCOPES] : SCOPES;
  return (
    <WriteForm
      title={TOKENS.create}
      submitText={TOKENS.submit}
      isReady={name.trim() !== "" && scopes.length > 0}
      onSubmit={() =>
        createToken({
          name: name.trim(),
          scopes,
          subtree,
          networks: networks.split(/[\s,]+/).filter((network) => network !== ""),
          expiresAt: new Date(Date.now() + Number(days) * DAY_MS).toISOString(),
        })
      }
      onDone={onCreated}
      onClose={onClose}
    >
      <TextInput
        label={TOKENS.name}
        description={TOKENS.nameHint}
        data-autofocus
        required
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        mb="sm"
      />
      <fieldset className={styles.choices}>
        <legend>{TOKENS.scopes}</legend>
        {grantableScopes.map((scope) => (
          <Switch
            key={scope}
            label={TOKENS.scopeTexts[scope]}
            checked={scopes.includes(scope)}
            onChange={(event) =>
              setScopes(
                event.currentTarget.checked
                  ? [...scopes, scope]
                  : scopes.filter((each) => each !== scope),
              )
            }
          />
        ))}
      </fieldset>
      <SubtreeSelect label={TOKENS.subtree} value={subtree} onChange={setSubtree} />
      <TextInput
        label={TOKENS.networks}
        description={TOKENS.networksHint}
        value={networks}
        onChange={(event) => setNetworks(event.currentTarget.value)}
        mb="sm"
      />
      <Select
        label={TOKENS.expires}
        data={[...TOKENS.days]}
        value={days}
        allowDeselect={false}
        comboboxProps={IN_DIALOG}
        onChange={(value) => setDays(value ?? "30")}
      />
    </WriteForm>
  );
}

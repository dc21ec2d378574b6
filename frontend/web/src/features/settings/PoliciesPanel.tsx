import { Button, Radio, Stack, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { POLICIES_KEY, type PolicyValues, usePolicies, writePolicies } from "../../api/policies.ts";
import { POLICIES } from "../../i18n/settings.ts";
import { REFUSED } from "../../i18n/ui.ts";
import type { Policies } from "../../model/rows.ts";
import { Panel } from "../../ui/Panel.tsx";
import { QueryFailure } from "../../ui/QueryFailure.tsx";
import { reportDone } from "../../ui/reportDone.tsx";
import { Failure, Loading } from "../../ui/States.tsx";
import styles from "./Settings.module.css";

type Props = { isAdmin: boolean };

/** Which changes of queues need approval, and what happens to work above a lowered limit. */
export function PoliciesPanel({ isAdmin }: Props) {
  const policies = usePolicies();
  if (policies.error !== null && policies.data === undefined) {
    return <QueryFailure error={policies.error} onRetry={() => void policies.refetch()} />;
  }
  return (
    <Panel title={POLICIES.title} note={POLICIES.note}>
      {policies.data === undefined ? (
        <Loading />
      ) : (
        <PoliciesForm policies={policies.data} isAdmin={isAdmin} />
      )}
    </Panel>
  );
}

function PoliciesForm({ policies, isAdmin }: Props & { policies: Policies }) {
  const queries = useQueryClient();
  const [edit, setEdit] = useState<Partial<PolicyValues>>({});
  const [reason, setReason] = useState("");
  const values = { approval: policies.approval, belowUse: policies.belowUse, ...edit };
  const isDirty = values.approval !== policies.approval || values.belowUse !== policies.belowUse;
  const save = useMutation({
    mutationFn: () => writePolicies(values, policies.etag, reason.trim()),
    onSuccess: (written) => {
      queries.setQueryData(POLICIES_KEY, written);
      setEdit({});
      setReason("");
      reportDone(POLICIES.saved, POLICIES.savedText);
    },
    // Another administrator may have been first: the next try starts from what holds now.
    onError: () => queries.invalidateQueries({ queryKey: POLICIES_KEY }),
  });
  return (
    <form
      aria-label={POLICIES.title}
      onSubmit={(event) => {
        event.preventDefault();
        if (isDirty && !save.isPending) save.mutate();
      }}
    >
      {!isAdmin && <p>{POLICIES.locked}</p>}
      <Choice
        name={POLICIES.approval}
        choices={POLICIES.approvals}
        value={values.approval}
        isLocked={!isAdmin}
        onChange={(approval) => setEdit({ ...edit, approval })}
      />
      <Choice
        name={POLICIES.belowUse}
        hint={POLICIES.belowUseNote}
        choices={POLICIES.belowUses}
        value={values.belowUse}
        isLocked={!isAdmin}
        onChange={(belowUse) => setEdit({ ...edit, belowUse })}
      />
      {isAdmin && (
        <TextInput
          label={POLICIES.reason}
          description={POLICIES.reasonHint}
          value={reason}
          maxLength={1000}
          maw={480}
          onChange={(event) => setReason(event.currentTarget.value)}
        />
      )}
      {save.error !== null && <Failure title={REFUSED} detail={save.error.message} />}
      {isAdmin && (
        <div className={styles.buttons}>
          <Button type="submit" loading={save.isPending} disabled={!isDirty}>
            {POLICIES.save}
          </Button>
        </div>
      )}
    </form>
  );
}

type ChoiceProps<T extends string> = {
  name: string;
  hint?: string;
  choices: Readonly<Record<T, { readonly label: string; readonly hint: string }>>;
  value: T;
  isLocked: boolean;
  onChange: (value: T) => void;
};

function Choice<T extends string>(props: ChoiceProps<T>) {
  const { name, hint, choices, value, isLocked, onChange } = props;
  const options = Object.keys(choices) as T[];
  return (
    <Radio.Group
      label={name}
      description={hint}
      value={value}
      onChange={(option) => onChange(option as T)}
      mb="lg"
    >
      <Stack gap="xs" mt="xs">
        {options.map((option) => (
          <Radio
            key={option}
            value={option}
            label={choices[option].label}
            description={choices[option].hint}
            disabled={isLocked}
          />
        ))}
      </Stack>
    </Radio.Group>
  );
}

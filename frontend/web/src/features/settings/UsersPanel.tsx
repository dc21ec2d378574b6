import { Button, Select, Switch, TextInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import {
  createBinding,
  createUser,
  deleteBinding,
  listBindings,
  listUsers,
  patchUser,
} from "../../api/access.ts";
import { dateTime } from "../../i18n/numbers.ts";
import { SETTINGS, USERS } from "../../i18n/settings.ts";
import { REFUSED } from "../../i18n/ui.ts";
import type { Role, RoleBinding, User } from "../../model/rows.ts";
import { DataTable } from "../../ui/DataTable.tsx";
import { IN_DIALOG } from "../../ui/Dialog.tsx";
import { Panel } from "../../ui/Panel.tsx";
import { QueryFailure } from "../../ui/QueryFailure.tsx";
import { reportDone, reportFailure } from "../../ui/reportDone.tsx";
import { Loading } from "../../ui/States.tsx";
import { WriteForm } from "../../ui/WriteForm.tsx";
import styles from "./Settings.module.css";
import { SubtreeSelect } from "./SubtreeSelect.tsx";

const ROLES = Object.entries(USERS.roles).map(([value, label]) => ({ value, label }));

/** All users, what they may do, and the dialogs that change it. */
export function UsersPanel() {
  const queries = useQueryClient();
  const [isCreating, setCreating] = useState(false);
  const [binding, setBinding] = useState<string | null>(null);
  const users = useQuery({ queryKey: ["users"], queryFn: ({ signal }) => listUsers(signal) });
  const bindings = useQuery({
    queryKey: ["users", "bindings"],
    queryFn: ({ signal }) => listBindings(signal),
  });
  const done = (title: string, text: string) => {
    reportDone(title, text);
    setCreating(false);
    setBinding(null);
    void queries.invalidateQueries({ queryKey: ["users"] });
  };
  const write = useMutation({
    mutationFn: ({ run }: { run: () => Promise<unknown>; title: string; text: string }) => run(),
    onSuccess: (_, { title, text }) => done(title, text),
    onError: (error) => reportFailure(REFUSED, error.message),
  });
  const error = users.error ?? bindings.error;
  if (error !== null) {
    const retry = () => void queries.refetchQueries({ queryKey: ["users"] });
    return <QueryFailure error={error} onRetry={retry} />;
  }
  return (
    <Panel
      title={USERS.title}
      note={USERS.note}
      tools={
        <Button size="xs" onClick={() => setCreating(true)}>
          {USERS.create}
        </Button>
      }
      flush
    >
      {users.data === undefined || bindings.data === undefined ? (
        <Loading />
      ) : (
        <DataTable name={USERS.title} columns={USERS.columns}>
          {users.data.items.map((user) => (
            <UserRow
              key={user.username}
              user={user}
              bindings={bindings.data.items.filter(({ username }) => username === user.username)}
              onAddRole={() => setBinding(user.username)}
              onRemoveRole={({ id }) =>
                write.mutate({
                  run: () => deleteBinding(id),
                  title: USERS.roleRemoved,
                  text: user.username,
                })
              }
              onActive={(isActive) =>
                write.mutate({
                  run: () => patchUser(user.username, { isActive }),
                  title: USERS.changed,
                  text: user.username,
                })
              }
            />
          ))}
        </DataTable>
      )}
      {isCreating && (
        <NewUserDialog
          onCreated={(username) => done(USERS.created, username)}
          onClose={() => setCreating(false)}
        />
      )}
      {binding !== null && (
        <NewRoleDialog
          username={binding}
          onCreated={() => done(USERS.roleAdded, binding)}
          onClose={() => setBinding(null)}
        />
      )}
    </Panel>
  );
}

type RowProps = {
  user: User;
  bindings: readonly RoleBinding[];
  onAddRole: () => void;
  onRemoveRole: (binding: RoleBinding) => void;
  onActive: (isActive: boolean) => void;
};

function UserRow({ user, bindings, onAddRole, onRemoveRole, onActive }: RowProps) {
  const { username, displayName, isActive, isAdmin, lastLoginAt } = user;
  const isBuiltIn = isAdmin && !bindings.some(({ role }) => role === "admin");
  return (
    <tr>
      <th scope="row">
        {displayName || username}
        {displayName !== "" && displayName !== username && (
          <div className={styles.sub}>{username}</div>
        )}
      </th>
      <td>
        <div className={styles.roles}>
          {isBuiltIn && <span className={styles.role}>{USERS.superuser}</span>}
          {bindings.map((each) => {
            const role = USERS.roleOf(USERS.roleNames[each.role], each.subtree ?? SETTINGS.whole);
            return (
              <span key={each.id} className={styles.role}>
                {role}
                <button
                  type="button"
                  className={styles.remove}
                  aria-label={USERS.removeRole(role, username)}
                  onClick={() => onRemoveRole(each)}
                >
                  ×
                </button>
              </span>
            );
          })}
          {!isBuiltIn && bindings.length === 0 && (
            <span className={styles.sub}>{USERS.noRoles}</span>
          )}
          <Button
            size="compact-xs"
            variant="default"
            aria-label={USERS.addRoleTo(username)}
            onClick={onAddRole}
          >
            {USERS.addRole}
          </Button>
        </div>
      </td>
      <td>{lastLoginAt === null ? SETTINGS.never : dateTime(lastLoginAt)}</td>
      <td>
        <Switch
          aria-label={USERS.active(username)}
          checked={isActive}
          onChange={(event) => onActive(event.currentTarget.checked)}
        />
      </td>
    </tr>
  );
}

type NewUserProps = { onCreated: (username: string) => void; onClose: () => void };

function NewUserDialog({ onCreated, onClose }: NewUserProps) {
  const [user, setUser] = useState({ username: "", displayName: "", password: "" });
  return (
    <WriteForm
      title={USERS.create}
      submitText={USERS.submit}
      isReady={user.username.trim() !== "" && user.password !== ""}
      onSubmit={() => createUser({ ...user, username: user.username.trim() })}
      onDone={({ username }) => onCreated(username)}
      onClose={onClose}
    >
      <TextInput
        label={USERS.username}
        data-autofocus
        required
        autoComplete="off"
        value={user.username}
        onChange={(event) => setUser({ ...user, username: event.currentTarget.value })}
        mb="sm"
      />
      <TextInput
        label={USERS.displayName}
        value={user.displayName}
        onChange={(event) => setUser({ ...user, displayName: event.currentTarget.value })}
        mb="sm"
      />
      <TextInput
        label={USERS.password}
        description={USERS.passwordHint}
        type="password"
        required
        autoComplete="new-password"
        value={user.password}
        onChange={(event) => setUser({ ...user, password: event.currentTarget.value })}
      />
    </WriteForm>
  );
}

type NewRoleProps = { username: string; onCreated: () => void; onClose: () => void };

function NewRoleDialog({ username, onCreated, onClose }: NewRoleProps) {
  const [role, setRole] = useState<Role>("editor");
  const [subtree, setSubtree] = useState<string | null>(null);
  return (
    <WriteForm
      title={USERS.addRoleTo(username)}
      submitText={USERS.addRole}
      isReady
      onSubmit={() => createBinding({ username, role, subtree })}
      onDone={onCreated}
      onClose={onClose}
    >
      <Select
        label={USERS.role}
        data={ROLES}
        value={role}
        allowDeselect={false}
        comboboxProps={IN_DIALOG}
        onChange={(value) => setRole(value as Role)}
        mb="sm"
      />
      <SubtreeSelect label={USERS.subtree} value={subtree} onChange={setSubtree} />
    </WriteForm>
  );
}

import { Button } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { deleteToken, listTokens } from "../../api/access.ts";
import { dateTime } from "../../i18n/numbers.ts";
import { SETTINGS, TOKENS } from "../../i18n/settings.ts";
import { REFUSED } from "../../i18n/ui.ts";
import type { Token, TokenCreated } from "../../model/rows.ts";
import { DataTable } from "../../ui/DataTable.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { DialogButtons } from "../../ui/DialogButtons.tsx";
import { Panel } from "../../ui/Panel.tsx";
import { QueryFailure } from "../../ui/QueryFailure.tsx";
import { reportDone, reportFailure } from "../../ui/reportDone.tsx";
import { Empty, Loading } from "../../ui/States.tsx";
import { NewTokenDialog } from "./NewTokenDialog.tsx";
import styles from "./Settings.module.css";

const TOKENS_QUERY_KEY = ["tokens"];

/** List the tokens (for an admin those of all users), with a dialog to create one and one to revoke one. */
export function TokensPanel({ isAdmin }: { isAdmin: boolean }) {
  const queryClient = useQueryClient();
  const [isCreating, setCreating] = useState(false);
  const [newToken, setNewToken] = useState<TokenCreated | null>(null);
  const [tokenToRevoke, setTokenToRevoke] = useState<Token | null>(null);
  const { data, error } = useQuery({
    queryKey: TOKENS_QUERY_KEY,
    queryFn: ({ signal }) => listTokens(isAdmin, signal),
  });
  const reload = () => void queryClient.invalidateQueries({ queryKey: TOKENS_QUERY_KEY });
  const revocation = useMutation({
    mutationFn: ({ id }: Token) => deleteToken(id),
    onSuccess: (_, { name }) => {
      reportDone(TOKENS.revoked, name);
      reload();
    },
    onError: (problem) => reportFailure(REFUSED, problem.message),
    onSettled: () => setTokenToRevoke(null),
  });
  return (
    <Panel
      title={TOKENS.title}
      note={TOKENS.note}
      tools={
        <Button size="xs" onClick={() => setCreating(true)}>
          {TOKENS.create}
        </Button>
      }
      flush
    >
      {error !== null ? (
        <QueryFailure error={error} onRetry={reload} />
      ) : data === undefined ? (
        <Loading />
      ) : data.items.length === 0 ? (
        <Empty title={TOKENS.emptyTitle}>{TOKENS.empty}</Empty>
      ) : (
        <DataTable name={TOKENS.title} columns={TOKENS.columns}>
          {data.items.map((token) => (
            <tr key={token.id}>
              <th scope="row">{token.name}</th>
              <td>{token.owner}</td>
              <td>
                <code>{token.prefix}</code>
              </td>
              <td>{token.scopes.map((scope) => TOKENS.scopeTexts[scope]).join(", ")}</td>
              <td>{token.subtree ?? SETTINGS.whole}</td>
              <td>{token.networks.length === 0 ? TOKENS.anywhere : token.networks.join(", ")}</td>
              <td>{token.expiresAt === null ? SETTINGS.never : dateTime(token.expiresAt)}</td>
              <td>{token.lastUsedAt === null ? SETTINGS.never : dateTime(token.lastUsedAt)}</td>
              <td>
                <Button
                  size="compact-sm"
                  variant="default"
                  aria-label={TOKENS.revokeOf(token.name)}
                  onClick={() => setTokenToRevoke(token)}
                >
                  {TOKENS.revoke}
                </Button>
              </td>
            </tr>
          ))}
        </DataTable>
      )}
      {isCreating && (
        <NewTokenDialog
          onCreated={(token) => {
            setCreating(false);
            setNewToken(token);
            reload();
          }}
          onClose={() => setCreating(false)}
        />
      )}
      {newToken !== null && <CreatedDialog token={newToken} onClose={() => setNewToken(null)} />}
      {tokenToRevoke !== null && (
        <Dialog
          title={TOKENS.revokeTitle(tokenToRevoke.name)}
          size="md"
          onClose={() => setTokenToRevoke(null)}
        >
          <p>{TOKENS.revokeText}</p>
          <DialogButtons
            cancelText={TOKENS.keep}
            confirmText={TOKENS.revoke}
            onCancel={() => setTokenToRevoke(null)}
            onConfirm={() => revocation.mutate(tokenToRevoke)}
          />
        </Dialog>
      )}
    </Panel>
  );
}

/** Show the secret of a new token; the API never returns it again. */
function CreatedDialog({ token, onClose }: { token: TokenCreated; onClose: () => void }) {
  const [isCopied, setCopied] = useState(false);
  return (
    <Dialog title={TOKENS.created} size="md" onClose={onClose}>
      <p>{TOKENS.createdText}</p>
      <code className={styles.secret}>{token.token}</code>
      <div className={styles.buttons}>
        <Button
          variant="default"
          onClick={() =>
            void navigator.clipboard.writeText(token.token).then(() => setCopied(true))
          }
        >
          {isCopied ? SETTINGS.copied : SETTINGS.copy}
        </Button>
        <Button onClick={onClose}>{TOKENS.close}</Button>
      </div>
    </Dialog>
  );
}

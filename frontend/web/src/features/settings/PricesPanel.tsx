import { Button, Group } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { deletePrice, PRICES_KEY, usePrices } from "../../api/prices.ts";
import { modelName } from "../../i18n/numbers.ts";
import { PRICES } from "../../i18n/prices.ts";
import { REFUSED } from "../../i18n/ui.ts";
import type { Price, PriceList } from "../../model/rows.ts";
import { DataTable } from "../../ui/DataTable.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { DialogButtons } from "../../ui/DialogButtons.tsx";
import { Panel } from "../../ui/Panel.tsx";
import { QueryFailure } from "../../ui/QueryFailure.tsx";
import { reportDone, reportFailure } from "../../ui/reportDone.tsx";
import { Empty, Loading } from "../../ui/States.tsx";
import { CurrencyDialog, PriceDialog } from "./PriceDialogs.tsx";

type Opened = { kind: "new" } | { kind: "currency" } | { kind: "edit" | "delete"; price: Price };

/** What a GPU-hour costs, by model and first day; admins edit it. */
export function PricesPanel({ isAdmin }: { isAdmin: boolean }) {
  const queries = useQueryClient();
  const [opened, setOpened] = useState<Opened | null>(null);
  const { data, error, refetch } = usePrices();
  const close = () => setOpened(null);
  const done = (title: string, text: string) => {
    reportDone(title, text);
    close();
    void queries.invalidateQueries({ queryKey: PRICES_KEY });
    void queries.invalidateQueries({ queryKey: ["usage"] });
  };
  const deletion = useMutation({
    mutationFn: deletePrice,
    onSuccess: (_, price) => done(PRICES.deleted, nameOf(price.model)),
    onError: (problem) => {
      reportFailure(REFUSED, problem.message);
      close();
      void queries.invalidateQueries({ queryKey: PRICES_KEY });
    },
  });
  if (error !== null && data === undefined) {
    return <QueryFailure error={error} onRetry={() => void refetch()} />;
  }
  return (
    <Panel
      title={PRICES.title}
      note={isAdmin ? PRICES.note : `${PRICES.note} ${PRICES.locked}`}
      tools={
        isAdmin &&
        data !== undefined && (
          <Group gap="xs">
            <Button size="xs" variant="default" onClick={() => setOpened({ kind: "currency" })}>
              {PRICES.currencyOf(data.currency)}
            </Button>
            <Button size="xs" onClick={() => setOpened({ kind: "new" })}>
              {PRICES.create}
            </Button>
          </Group>
        )
      }
      flush
    >
      {data === undefined ? (
        <Loading />
      ) : data.items.length + data.defaults.length === 0 ? (
        <Empty title={PRICES.emptyTitle}>{PRICES.empty}</Empty>
      ) : (
        <PriceTable list={data} onOpen={isAdmin ? setOpened : null} />
      )}
      {data !== undefined && opened?.kind === "currency" && (
        <CurrencyDialog list={data} onDone={done} onClose={close} />
      )}
      {data !== undefined && opened?.kind === "new" && (
        <PriceDialog list={data} onDone={done} onClose={close} />
      )}
      {data !== undefined && opened?.kind === "edit" && (
        <PriceDialog list={data} price={opened.price} onDone={done} onClose={close} />
      )}
      {opened?.kind === "delete" && (
        <Dialog
          title={PRICES.deleteTitle(nameOf(opened.price.model), opened.price.validFrom)}
          size="md"
          onClose={close}
        >
          <p>{PRICES.deleteText}</p>
          <DialogButtons
            cancelText={PRICES.keep}
            confirmText={PRICES.delete}
            onCancel={close}
            onConfirm={() => deletion.mutate(opened.price)}
          />
        </Dialog>
      )}
    </Panel>
  );
}

function nameOf(model: string): string {
  return model === "*" ? PRICES.otherModels : modelName(model);
}

type TableProps = { list: PriceList; onOpen: ((opened: Opened) => void) | null };

function PriceTable({ list, onOpen }: TableProps) {
  const columns = onOpen === null ? PRICES.columns : [...PRICES.columns, PRICES.actions];
  const valid = new Set(
    list.items.flatMap(({ model, state }) => (state === "later" ? [] : [model])),
  );
  return (
    <DataTable name={PRICES.title} columns={columns} numberColumns={[1]}>
      {list.items.map((price) => (
        <tr key={price.id}>
          <th scope="row">{nameOf(price.model)}</th>
          <td>{PRICES.perHour(price.price, list.currency)}</td>
          <td>{price.validFrom}</td>
          <td>{PRICES.states[price.state]}</td>
          {onOpen !== null && (
            <td>
              <Group gap="xs" wrap="nowrap">
                <Button
                  size="compact-sm"
                  variant="default"
                  aria-label={PRICES.editOf(nameOf(price.model), price.validFrom)}
                  onClick={() => onOpen({ kind: "edit", price })}
                >
                  {PRICES.edit}
                </Button>
                <Button
                  size="compact-sm"
                  variant="default"
                  aria-label={PRICES.deleteOf(nameOf(price.model), price.validFrom)}
                  onClick={() => onOpen({ kind: "delete", price })}
                >
                  {PRICES.delete}
                </Button>
              </Group>
            </td>
          )}
        </tr>
      ))}
      {list.defaults.map(({ model, price }) => (
        <tr key={`default ${model}`}>
          <th scope="row">{nameOf(model)}</th>
          <td>{PRICES.perHour(price, list.currency)}</td>
          <td>{PRICES.always}</td>
          <td>{valid.has(model) ? PRICES.replacedDefault : PRICES.bySetting}</td>
          {onOpen !== null && <td />}
        </tr>
      ))}
    </DataTable>
  );
}

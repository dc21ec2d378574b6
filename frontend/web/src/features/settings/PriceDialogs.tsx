import { Autocomplete, TextInput } from "@mantine/core";
import { useState } from "react";
import { createPrice, type PriceValues, patchPrice, setCurrency } from "../../api/prices.ts";
import { PRICES } from "../../i18n/prices.ts";
import type { Price, PriceList } from "../../model/rows.ts";
import { IN_DIALOG } from "../../ui/Dialog.tsx";
import { WriteForm } from "../../ui/WriteForm.tsx";

const OTHER_MODELS = "*";
const LONGEST_CURRENCY = 16;

type Written = (title: string, text: string) => void;
type PriceProps = { list: PriceList; price?: Price; onDone: Written; onClose: () => void };

/** The day in UTC, as the server counts days. */
function today(): string {
  return new Date().toISOString().slice(0, 10);
}

/** Set the price of a model from a day on, or correct a price. */
export function PriceDialog({ list, price, onDone, onClose }: PriceProps) {
  const [model, setModel] = useState(price?.model ?? "");
  const [amount, setAmount] = useState(price === undefined ? "" : String(price.price));
  const [validFrom, setValidFrom] = useState(price?.validFrom ?? today());
  const isNumber = amount.trim() !== "" && Number(amount) >= 0;
  const values: PriceValues = { price: Number(amount), validFrom };
  const title = price === undefined ? PRICES.create : PRICES.editOf(price.model, price.validFrom);
  return (
    <WriteForm
      title={title}
      submitText={price === undefined ? PRICES.submit : PRICES.save}
      isReady={model.trim() !== "" && isNumber && validFrom !== ""}
      onSubmit={() =>
        price === undefined ? createPrice(model.trim(), values) : patchPrice(price, values)
      }
      onDone={(written) =>
        onDone(price === undefined ? PRICES.created : PRICES.edited, written.model)
      }
      onClose={onClose}
    >
      {price === undefined && (
        <Autocomplete
          label={PRICES.model}
          description={PRICES.modelHint}
          data-autofocus
          required
          data={[...list.models, OTHER_MODELS]}
          value={model}
          comboboxProps={IN_DIALOG}
          onChange={setModel}
          mb="sm"
        />
      )}
      <TextInput
        label={PRICES.price(list.currency)}
        required
        inputMode="decimal"
        autoComplete="off"
        value={amount}
        error={amount === "" || isNumber ? undefined : PRICES.priceWrong}
        onChange={(event) => setAmount(event.currentTarget.value)}
        mb="sm"
      />
      <TextInput
        label={PRICES.validFrom}
        type="date"
        required
        value={validFrom}
        onChange={(event) => setValidFrom(event.currentTarget.value)}
      />
      {validFrom !== "" && validFrom < today() && <p>{PRICES.past}</p>}
    </WriteForm>
  );
}

type CurrencyProps = { list: PriceList; onDone: Written; onClose: () => void };

/** Set what all prices are in. */
export function CurrencyDialog({ list, onDone, onClose }: CurrencyProps) {
  const [currency, setValue] = useState(list.currency);
  return (
    <WriteForm
      title={PRICES.currency}
      submitText={PRICES.currencySubmit}
      isReady={currency.trim() !== "" && currency.trim() !== list.currency}
      onSubmit={() => setCurrency(currency.trim(), list.etag)}
      onDone={(written) => onDone(PRICES.currencySet, written.currency)}
      onClose={onClose}
    >
      <TextInput
        label={PRICES.currency}
        description={PRICES.currencyHint}
        data-autofocus
        required
        maxLength={LONGEST_CURRENCY}
        autoComplete="off"
        value={currency}
        onChange={(event) => setValue(event.currentTarget.value)}
      />
    </WriteForm>
  );
}

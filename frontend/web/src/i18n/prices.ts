/** Texts of the price list. */
import type { Price } from "../model/rows.ts";

export const PRICES = {
  title: "Prices of a GPU-hour",
  note: "Usage and its reports compute costs from them. Days are those of UTC.",
  columns: ["GPU model", "Price", "Valid from", "Today"],
  actions: "Edit or delete",
  otherModels: "all other models",
  perHour: (price: number, currency: string) =>
    `${price.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 6 })} ${currency}`,
  always: "always",
  bySetting: "default, by the setting KAIWEB_GPU_PRICES",
  states: {
    valid: "valid",
    later: "valid later",
    replaced: "replaced",
  } satisfies Record<Price["state"], string>,
  replacedDefault: "default, replaced",
  emptyTitle: "No prices",
  empty:
    "Without prices Usage shows GPU-hours only. An administrator sets a price for a model, or for all models.",
  locked: "Only administrators edit prices.",
  create: "New price",
  model: "GPU model",
  modelHint: "As nodes name it; * stands for all models without a price of their own.",
  price: (currency: string) => `Price of a GPU-hour in ${currency}`,
  priceWrong: "Expected a number, 0 or larger.",
  validFrom: "Valid from",
  past: "This day is in the past: costs since then, also of closed months, are computed anew.",
  submit: "Set price",
  created: "Price set",
  edit: "Edit",
  editOf: (model: string, day: string) => `Edit the price of ${model} from ${day}`,
  save: "Save price",
  edited: "Price changed",
  delete: "Delete",
  deleteOf: (model: string, day: string) => `Delete the price of ${model} from ${day}`,
  deleteTitle: (model: string, day: string) => `Delete the price of ${model} from ${day}?`,
  deleteText:
    "Costs since this day are computed by the price before it, also those of closed months.",
  keep: "Keep it",
  deleted: "Price deleted",
  currency: "Currency",
  currencyOf: (currency: string) => `Currency: ${currency}`,
  currencyHint: "All prices, also earlier ones, are shown in it. Nothing is converted.",
  currencySubmit: "Set currency",
  currencySet: "Currency set",
} as const;

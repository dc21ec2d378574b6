/** The price list of GPU-hours. */
import { useQuery } from "@tanstack/react-query";
import type { Price, PriceList } from "../model/rows.ts";
import { call } from "./client.ts";

export const PRICES_KEY = ["prices"];
export type PriceValues = { readonly price: number; readonly validFrom: string };

export function usePrices() {
  return useQuery({
    queryKey: PRICES_KEY,
    queryFn: ({ signal }) => call<PriceList>("GET", "/prices", { signal }),
  });
}

export function createPrice(model: string, values: PriceValues): Promise<Price> {
  return call("POST", "/prices", { body: { model, ...values } });
}

export function patchPrice({ id, etag }: Price, values: PriceValues): Promise<Price> {
  return call("PATCH", `/prices/${id}`, { body: values, headers: { "If-Match": etag } });
}

export function deletePrice({ id, etag }: Price): Promise<void> {
  return call("DELETE", `/prices/${id}`, { headers: { "If-Match": etag } });
}

export function setCurrency(currency: string, etag: string): Promise<PriceList> {
  return call("PATCH", "/prices", { body: { currency }, headers: { "If-Match": etag } });
}

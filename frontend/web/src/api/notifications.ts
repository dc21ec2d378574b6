/** Webhooks that are told about events. */
import { useQuery } from "@tanstack/react-query";
import type { Delivery, Notification, NotificationEvent } from "../model/rows.ts";
import { call } from "./client.ts";

export const NOTIFICATIONS_KEY = ["notifications"];
const REFETCH_MS = 30_000;
/** While a delivery is on its way: the worker looks every five seconds. */
const WAITING_REFETCH_MS = 2_000;

type Items = { readonly items: readonly Notification[] };
/** A secret that is left out stays as it is. */
export type NotificationValues = {
  readonly name: string;
  readonly url: string;
  readonly events: readonly NotificationEvent[];
  readonly subtree: string | null;
  readonly waitMinutes: number;
  readonly report: Notification["report"];
  readonly enabled: boolean;
  readonly secret?: string | null;
};

export function useNotifications() {
  return useQuery({
    queryKey: NOTIFICATIONS_KEY,
    queryFn: ({ signal }) => call<Items>("GET", "/notifications", { signal }),
    refetchInterval: ({ state }) =>
      state.data?.items.some(({ pending }) => pending > 0) ? WAITING_REFETCH_MS : REFETCH_MS,
  });
}

export function createNotification(values: NotificationValues): Promise<Notification> {
  return call("POST", "/notifications", { body: values });
}

export function patchNotification(
  { id, etag }: Notification,
  values: NotificationValues,
): Promise<Notification> {
  return call("PATCH", `/notifications/${id}`, { body: values, headers: { "If-Match": etag } });
}

export function deleteNotification({ id, etag }: Notification): Promise<void> {
  return call("DELETE", `/notifications/${id}`, { headers: { "If-Match": etag } });
}

export function testNotification({ id }: Notification): Promise<Delivery> {
  return call("POST", `/notifications/${id}:test`);
}

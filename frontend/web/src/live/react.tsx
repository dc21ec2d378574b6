/** How components see live rows: hooks over one client, and nothing of sockets or frames. */
import {
  createContext,
  type ReactNode,
  useContext,
  useEffect,
  useMemo,
  useSyncExternalStore,
} from "react";
import { asRow, type TopicRows } from "../model/rows.ts";
import type { LiveClient, LiveStatus } from "./client.ts";
import type { AsOf, Problem } from "./protocol.ts";
import type { Subscription } from "./resume.ts";

const Context = createContext<LiveClient | null>(null);

export function LiveProvider({ client, children }: { client: LiveClient; children: ReactNode }) {
  return <Context value={client}>{children}</Context>;
}

export type Rows<T> = {
  readonly rows: ReadonlyMap<string, T>;
  /** Changes exactly when `rows` does; the map itself is patched in place. */
  readonly version: number;
  readonly loaded: boolean;
  readonly asOf: AsOf | null;
  readonly problem: Problem | null;
};

/** All rows of one of the fixed topics, kept up to date while the component is on screen. */
export function useTopic<K extends keyof TopicRows>(name: K): Rows<TopicRows[K]> {
  return useRows<TopicRows[K]>(name);
}

/** The one row of a topic about one thing, e.g. `workload:<ns>/<name>`. */
export function useSingle<T>(name: string): Rows<T> & { readonly row: T | undefined } {
  const rows = useRows<T>(name);
  return { ...rows, row: rows.rows.values().next().value };
}

function useRows<T>(name: string): Rows<T> {
  const client = useClient();
  const subscription = client.look(name);
  useEffect(() => client.topic(name).release, [client, name]);
  const version = useSyncExternalStore(
    (listener) => watch(client, subscription, listener),
    () => `${subscription.store.version} ${subscription.state}`,
  );
  return useMemo(
    () => ({
      rows: subscription.store.rows as unknown as ReadonlyMap<string, T>,
      version: Number.parseInt(version, 10),
      loaded: subscription.store.loaded,
      asOf: subscription.store.asOf,
      problem: subscription.state === "failed" ? subscription.problem : null,
    }),
    [subscription, version],
  );
}

/** One row by key; renders again only when this row changes. */
export function useRow<K extends keyof TopicRows>(name: K, key: string): TopicRows[K] | undefined {
  const client = useClient();
  const { store } = client.look(name);
  useEffect(() => client.topic(name).release, [client, name]);
  const row = useSyncExternalStore(
    (listener) => store.subscribeRow(key, listener),
    () => store.row(key),
  );
  return row === undefined ? undefined : asRow<TopicRows[K]>(row);
}

export function useLiveStatus(): LiveStatus {
  const client = useClient();
  return useSyncExternalStore(
    (listener) => client.subscribe(listener),
    () => client.status,
  );
}

export function useClient(): LiveClient {
  const client = useContext(Context);
  if (client === null) throw new Error("a live hook is used outside LiveProvider");
  return client;
}

function watch(client: LiveClient, subscription: Subscription, listener: () => void): () => void {
  const leaveStore = subscription.store.subscribe(listener);
  const leaveClient = client.subscribe(listener);
  return () => {
    leaveStore();
    leaveClient();
  };
}

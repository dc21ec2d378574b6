/** Hooks that give components live rows, so that no component deals with sockets or frames. */
import {
  createContext,
  type ReactNode,
  useCallback,
  useContext,
  useSyncExternalStore,
} from "react";
import type { FilteredTopic, RowOf, TopicName, TopicRows } from "../model/rows.ts";
import type { LiveClient, LiveStatus, TopicView } from "./client.ts";

const LiveClientContext = createContext<LiveClient | null>(null);

export function LiveProvider({ client, children }: { client: LiveClient; children: ReactNode }) {
  return <LiveClientContext value={client}>{children}</LiveClientContext>;
}

/** Return all rows of one topic, kept up to date while the component is on screen. */
export function useTopic<N extends keyof TopicRows | FilteredTopic>(name: N): TopicView<RowOf<N>> {
  return useView(name);
}

/** Return the row of a topic about a single object, e.g. `workload:<namespace>/<name>`; undefined before the first frame. */
export function useSingle<N extends Exclude<TopicName, keyof TopicRows | FilteredTopic>>(
  name: N,
): TopicView<RowOf<N>> & { readonly row: RowOf<N> | undefined } {
  const view = useView(name);
  return { ...view, row: view.rows.values().next().value };
}

function useView<N extends TopicName>(name: N): TopicView<RowOf<N>> {
  const client = useClient();
  const watch = useCallback((listener: () => void) => client.watch(name, listener), [client, name]);
  return useSyncExternalStore(watch, () => client.view(name));
}

export function useLiveStatus(): LiveStatus {
  const client = useClient();
  const subscribe = useCallback((listener: () => void) => client.subscribe(listener), [client]);
  return useSyncExternalStore(subscribe, () => client.status);
}

export function useClient(): LiveClient {
  const client = useContext(LiveClientContext);
  if (client === null) throw new Error("a live hook is used outside LiveProvider");
  return client;
}

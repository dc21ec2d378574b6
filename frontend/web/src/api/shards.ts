/** Scheduling shards and the settings that hold for them. */
import { useQuery } from "@tanstack/react-query";
import type { Shard, ShardSettings, ShardWritten } from "../model/rows.ts";
import type { SpecPatch } from "../model/shards.ts";
import { call } from "./client.ts";

/** Shards change rarely; another administrator may do so all the same. */
const REFETCH_MS = 15_000;
export const SHARDS_KEY = ["shards"];

/** A write of a shard: some fields of its spec, all of it, or a new object. */
export type ShardWrite = {
  readonly name: string;
  readonly spec: SpecPatch;
} & ({ readonly kind: "create" } | { readonly kind: "patch" | "replace"; readonly etag: string });
type Options = {
  readonly dryRun: boolean;
  readonly reason?: string;
  readonly signal?: AbortSignal;
};

export function useShards() {
  return useQuery({
    queryKey: SHARDS_KEY,
    queryFn: ({ signal }) =>
      call<{ readonly items: readonly Shard[] }>("GET", "/shards", { signal }),
    refetchInterval: REFETCH_MS,
  });
}

export function useShardSettings(shard: string) {
  return useQuery({
    queryKey: [...SHARDS_KEY, "settings", shard],
    queryFn: ({ signal }) =>
      call<ShardSettings>("GET", `/settings?${new URLSearchParams({ shard })}`, { signal }),
    refetchInterval: REFETCH_MS,
  });
}

export function writeShard(write: ShardWrite, options: Options): Promise<ShardWritten> {
  const { name, spec } = write;
  if (write.kind === "create") {
    return call("POST", `/shards${query(options)}`, { body: { name, spec }, ...signalOf(options) });
  }
  return call(write.kind === "patch" ? "PATCH" : "PUT", `${pathOf(name)}${query(options)}`, {
    body: { spec },
    headers: { "If-Match": write.etag },
    ...signalOf(options),
  });
}

export function deleteShard(name: string, etag: string, reason: string): Promise<void> {
  const headers = { "If-Match": etag };
  return call("DELETE", `${pathOf(name)}${query({ dryRun: false, reason })}`, { headers });
}

function pathOf(name: string): string {
  return `/shards/${encodeURIComponent(name)}`;
}

function query({ dryRun, reason = "" }: Options): string {
  const search = new URLSearchParams();
  if (dryRun) search.set("dryRun", "true");
  if (reason !== "") search.set("reason", reason);
  return search.size === 0 ? "" : `?${search}`;
}

function signalOf({ signal }: Options): { signal?: AbortSignal } {
  return signal === undefined ? {} : { signal };
}

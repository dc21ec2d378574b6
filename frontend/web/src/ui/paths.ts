/** The addresses of the pages of single objects. */

export function queuePath(name: string): string {
  return `/queues/${encodeURIComponent(name)}`;
}

export function nodePath(name: string): string {
  return `/nodes/${encodeURIComponent(name)}`;
}

export function bindPath(namespace: string, name: string): string {
  return `/scheduler/binds?request=${encodeURIComponent(`${namespace}/${name}`)}`;
}

export function shardPath(name: string): string {
  return `/settings/shards/${encodeURIComponent(name)}`;
}

export function workloadPath({ namespace, name }: { namespace: string; name: string }): string {
  return `/workloads/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
}

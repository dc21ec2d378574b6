/** Names of objects as people know them. */

const POD_GROUP_NAME = /^pg-(.+)-[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/;

/** Return the key of a workload, `namespace/name`. */
export function workloadKey({ namespace, name }: { namespace: string; name: string }): string {
  return `${namespace}/${name}`;
}

/** Return `namespace/owner` for the key of a pod group that kaiweb named after its owner; else the key itself. */
export function workloadName(key: string): string {
  const [namespace = "", name = ""] = key.split("/");
  const owner = POD_GROUP_NAME.exec(name)?.[1];
  return owner === undefined ? key : `${namespace}/${owner}`;
}

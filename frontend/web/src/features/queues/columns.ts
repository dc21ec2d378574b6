import type { Queue, Resource } from "../../model/rows.ts";
import type { Bullet } from "../../ui/BulletBar.tsx";

/** The columns of the queue tree; the widths make one grid for the header and every row. */
export const COLUMNS = [
  { key: "name", label: "Queue", width: "minmax(190px, 1.5fr)", numeric: false },
  { key: "quota", label: "Quota", width: "76px", numeric: true },
  { key: "limit", label: "Limit", width: "76px", numeric: true },
  { key: "weight", label: "Weight", width: "54px", numeric: true },
  { key: "priority", label: "Priority", width: "58px", numeric: true },
  { key: "share", label: "Fair share", width: "76px", numeric: true },
  { key: "allocated", label: "Allocated", width: "76px", numeric: true },
  { key: "bar", label: "Use of what it may have", width: "minmax(140px, 2fr)", numeric: false },
  { key: "pending", label: "Pending", width: "60px", numeric: true },
  { key: "edit", label: "Edit", width: "30px", numeric: false },
] as const;

export const TEMPLATE = COLUMNS.map((column) => column.width).join(" ");

export function bulletOf(queue: Queue, resource: Resource): Bullet {
  return {
    resource,
    allocated: queue.allocated[resource],
    nonPreemptible: queue.allocatedNonPreemptible[resource],
    requested: queue.requested[resource],
    quota: queue.quota[resource],
    limit: queue.limit[resource],
    share: queue.share?.[resource] ?? null,
  };
}

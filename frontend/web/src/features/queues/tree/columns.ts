import { QUEUE_COLUMNS } from "../../../i18n/queues.ts";

/** The columns of the queue tree. The header and all rows share one grid of these widths. */
export const COLUMNS = [
  { key: "name", label: QUEUE_COLUMNS.name, width: "minmax(190px, 1.5fr)", numeric: false },
  { key: "quota", label: QUEUE_COLUMNS.quota, width: "76px", numeric: true },
  { key: "limit", label: QUEUE_COLUMNS.limit, width: "76px", numeric: true },
  { key: "weight", label: QUEUE_COLUMNS.weight, width: "54px", numeric: true },
  { key: "priority", label: QUEUE_COLUMNS.priority, width: "58px", numeric: true },
  { key: "share", label: QUEUE_COLUMNS.share, width: "76px", numeric: true },
  { key: "allocated", label: QUEUE_COLUMNS.allocated, width: "76px", numeric: true },
  { key: "bar", label: QUEUE_COLUMNS.bar, width: "minmax(120px, 2fr)", numeric: false },
  { key: "trend", label: QUEUE_COLUMNS.trend, width: "72px", numeric: false },
  { key: "pending", label: QUEUE_COLUMNS.pending, width: "60px", numeric: true },
  { key: "edit", label: QUEUE_COLUMNS.edit, width: "30px", numeric: false },
] as const;

export const TEMPLATE = COLUMNS.map((column) => column.width).join(" ");

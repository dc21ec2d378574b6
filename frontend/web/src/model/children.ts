/** The amounts of sibling queues as one table of texts, and the edits that make them true. */
import { readAmountText } from "./amountText.ts";
import type { DraftEdit } from "./draft.ts";
import type { Bound, Queue } from "./rows.ts";

export const CHILD_FIELDS = ["quota", "limit", "weight"] as const;
export type ChildField = (typeof CHILD_FIELDS)[number];
export type ChildTexts = Readonly<Record<ChildField, string>>;
/** The texts of each queue by its name. */
export type ChildTable = ReadonlyMap<string, ChildTexts>;

const UNLIMITED = "unlimited";

export function childTable(rows: readonly Queue[]): ChildTable {
  return new Map(
    rows.map(({ name, quota, limit, weight }) => [
      name,
      { quota: textOf(quota.gpu), limit: textOf(limit.gpu), weight: textOf(weight.gpu) },
    ]),
  );
}

/** Return the edits of what differs from the rows, or null while a text cannot be read. */
export function childEdits(rows: readonly Queue[], table: ChildTable): DraftEdit[] | null {
  const edits: DraftEdit[] = [];
  for (const row of rows) {
    const edit: Record<string, { gpu: Bound | null }> = {};
    for (const field of CHILD_FIELDS) {
      const value = readAmount(table.get(row.name)?.[field] ?? "", field);
      if (value === undefined) return null;
      if (value !== (row[field].gpu ?? null)) edit[field] = { gpu: value };
    }
    if (Object.keys(edit).length > 0) edits.push({ name: row.name, action: "update", edit });
  }
  return edits;
}

/** Return the sum of the quotas, or null if one is unlimited or unreadable. */
export function quotaSum(table: ChildTable): number | null {
  let sum = 0;
  for (const { quota } of table.values()) {
    const value = readAmount(quota, "quota");
    if (typeof value === "string" || value === undefined) return null;
    sum += value ?? 0;
  }
  return sum;
}

/** Scale all quotas so that they add up to `total`; quotas that are all 0 become equal. */
export function scaled(table: ChildTable, total: number): ChildTable {
  const sum = quotaSum(table);
  if (sum === null || sum === 0) return shared(table, total);
  return withQuotas(
    table,
    total,
    (quota) => (Number(readAmount(quota, "quota") ?? 0) * total) / sum,
  );
}

/** Give each queue the same quota, so that they add up to `total`. */
export function shared(table: ChildTable, total: number): ChildTable {
  return withQuotas(table, total, () => total / table.size);
}

/** Quotas have three decimals: they are rounded down, and the last queue gets what is left. */
function withQuotas(
  table: ChildTable,
  total: number,
  share: (quota: string) => number,
): ChildTable {
  let left = Math.round(total * 1000);
  const names = [...table.keys()];
  return new Map(
    [...table].map(([name, texts]) => {
      const isLast = name === names.at(-1);
      // A little is added because 0.29 * 1000 is 289.99999999999997.
      const part = isLast ? left : Math.floor(share(texts.quota) * 1000 + 1e-6);
      left -= part;
      return [name, { ...texts, quota: String(part / 1000) }];
    }),
  );
}

function textOf(value: Bound | undefined): string {
  return value === undefined ? "" : String(value);
}

/** Read a typed amount: null for unset; undefined if it cannot be read. */
function readAmount(text: string, field: ChildField): Bound | null | undefined {
  const trimmed = text.trim();
  if (trimmed === "") return field === "weight" ? undefined : null;
  if (trimmed === UNLIMITED) return field === "weight" ? undefined : UNLIMITED;
  const amount = readAmountText("gpu", trimmed);
  return typeof amount === "string" ? undefined : amount;
}

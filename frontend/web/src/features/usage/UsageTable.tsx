import { Link } from "react-router";
import { modelName } from "../../i18n/numbers.ts";
import { gpuHours, money, USAGE } from "../../i18n/usage.ts";
import type { UsageBy, UsageReport } from "../../model/rows.ts";
import { ColumnHeads } from "../../ui/ColumnHeads.tsx";
import { queuePath } from "../../ui/paths.ts";
import { ScrollRegion } from "../../ui/ScrollRegion.tsx";
import styles from "./Usage.module.css";

type Amounts = UsageReport["total"];

/** Who used how much, the largest first, with the total of all work. */
export function UsageTable({ report }: { report: UsageReport }) {
  const { by, currency, items, total } = report;
  const { columns } = USAGE;
  const heads = [
    columns[by],
    columns.gpuHours,
    columns.inQuota,
    columns.overQuota,
    columns.waiting,
    columns.notUsed,
    ...(currency === null ? [] : [columns.cost]),
  ];
  return (
    <ScrollRegion className={styles.scroll} name={USAGE.table}>
      <table className={styles.table}>
        <ColumnHeads labels={heads} />
        <tbody>
          {items.map((row) => (
            <tr key={row.key}>
              <td>
                <Name by={by} name={row.key} />
              </td>
              <Cells amounts={row} currency={currency} />
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <td>{USAGE.total}</td>
            <Cells amounts={total} currency={currency} />
          </tr>
        </tfoot>
      </table>
    </ScrollRegion>
  );
}

function Name({ by, name }: { by: UsageBy; name: string }) {
  if (by === "queue") {
    return <Link to={`${queuePath(name)}/history`}>{name}</Link>;
  }
  if (by === "owner") return name || USAGE.noUser;
  return name === "" ? USAGE.notPlaced : modelName(name);
}

function Cells({ amounts, currency }: { amounts: Amounts; currency: string | null }) {
  return (
    <>
      <td>{gpuHours(amounts.gpuHours)}</td>
      <td>{gpuHours(amounts.inQuotaHours)}</td>
      <td>{gpuHours(amounts.overQuotaHours)}</td>
      <td>{gpuHours(amounts.waitingHours)}</td>
      <td>
        {amounts.allocatedButIdleHours === null
          ? USAGE.unknown
          : gpuHours(amounts.allocatedButIdleHours)}
      </td>
      {currency !== null && <td>{money(amounts.cost, currency)}</td>}
    </>
  );
}

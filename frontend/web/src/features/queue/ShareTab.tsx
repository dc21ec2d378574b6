import { useQueueShare } from "../../api/details.ts";
import { amount, count, UNIT } from "../../i18n/numbers.ts";
import { SHARE } from "../../i18n/queue.ts";
import { NONE } from "../../i18n/ui.ts";
import type { Queue, Resource, ResourceShare } from "../../model/rows.ts";
import { waterfall } from "../../model/shares.ts";
import { DataTable } from "../../ui/DataTable.tsx";
import { Panel } from "../../ui/Panel.tsx";
import { QueryResult } from "../../ui/QueryResult.tsx";
import { QueueLink } from "../../ui/QueueLink.tsx";
import { ResourcePicker, useResource } from "../../ui/ResourcePicker.tsx";
import { Term } from "../../ui/Term.tsx";
import styles from "./Queue.module.css";

/** How the share of the queue came about, as steps that begin where the one before ended. */
export function ShareTab({ queue }: { queue: Queue }) {
  const query = useQueueShare(queue.name);
  const [resource, setResource] = useResource();
  return (
    <QueryResult query={query} rows={10}>
      {({ resources, parent }) => {
        const share = resources[resource];
        return (
          <>
            <Panel
              title={SHARE.title}
              note={SHARE.note(share.pool, resource, parent)}
              tools={<ResourcePicker value={resource} onChange={setResource} />}
              flush
            >
              <Waterfall share={share} resource={resource} />
              <p className={styles.hint}>
                <Term entry="share" />.{" "}
                {SHARE.wouldGet(amount(resource, share.wouldGet), UNIT[resource])} {SHARE.gate}
              </p>
            </Panel>
            <Panel title={SHARE.siblings} note={SHARE.siblingsNote} flush>
              <DataTable
                name={SHARE.siblings}
                columns={SHARE.siblingColumns}
                numberColumns={[1, 2, 3, 4]}
              >
                {share.siblings.map((sibling) => (
                  <tr
                    key={sibling.queue}
                    className={sibling.queue === queue.name ? styles.own : undefined}
                  >
                    <th scope="row">
                      <QueueLink queue={sibling.queue} />
                    </th>
                    <td>{count(sibling.priority)}</td>
                    <td>{sibling.weight}</td>
                    <td>{amount(resource, sibling.requested)}</td>
                    <td>{sibling.share === null ? NONE : amount(resource, sibling.share)}</td>
                  </tr>
                ))}
              </DataTable>
            </Panel>
          </>
        );
      }}
    </QueryResult>
  );
}

function Waterfall({ share, resource }: { share: ResourceShare; resource: Resource }) {
  const { falls, reach } = waterfall(share.steps);
  const at = (value: number) => `${(100 * value) / Math.max(reach, 1e-9)}%`;
  const total = share.share ?? falls.at(-1)?.to ?? 0;
  return (
    <DataTable name={SHARE.table} columns={SHARE.columns} numberColumns={[1, 2]}>
      {falls.map(({ kind, amount: value, from, to }) => (
        <tr key={kind}>
          <th scope="row">{SHARE.steps[kind]}</th>
          <td className={styles.number}>
            {value < 0 ? "−" : "+"}
            {amount(resource, Math.abs(value))}
          </td>
          <td className={styles.number}>{amount(resource, to)}</td>
          <td>
            <div className={styles.fall} aria-hidden>
              <i
                className={value < 0 ? styles.less : undefined}
                style={{ left: at(Math.min(from, to)), width: at(Math.abs(value)) }}
              />
            </div>
          </td>
        </tr>
      ))}
      <tr>
        <th scope="row">{SHARE.total}</th>
        <td className={styles.number} />
        <td className={styles.number}>
          <b>{share.share === null ? SHARE.unknown : amount(resource, total)}</b>
        </td>
        <td>
          <div className={styles.fall} aria-hidden>
            <i className={styles.total} style={{ left: 0, width: at(total) }} />
          </div>
        </td>
      </tr>
    </DataTable>
  );
}

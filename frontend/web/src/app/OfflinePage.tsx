import { Button } from "@mantine/core";
import { Link } from "react-router";
import { BANNER, OFFLINE } from "../i18n/app.ts";
import { count, dateTime, span } from "../i18n/numbers.ts";
import { useClient, useLiveStatus, useTopic } from "../live/react.tsx";
import type { TopicRows } from "../model/rows.ts";
import { DataTable } from "../ui/DataTable.tsx";
import { Fact, FactList } from "../ui/FactList.tsx";
import { useNow } from "../ui/now.ts";
import { Page } from "../ui/Page.tsx";
import { Panel } from "../ui/Panel.tsx";
import { Empty } from "../ui/States.tsx";

const TOPICS: readonly (readonly [keyof TopicRows, string])[] = [
  ["cluster", "/"],
  ["queues", "/queues"],
  ["workloads", "/workloads"],
  ["nodes", "/nodes"],
  ["sessions", "/scheduler"],
];

/** The state of the connection, and what this browser still has; part of the first load, so that it always opens. */
export function OfflinePage() {
  const client = useClient();
  const { link, heardAt, retryAt } = useLiveStatus();
  const now = useNow();
  const isOpen = link === "open";
  return (
    <Page title={isOpen ? OFFLINE.current : OFFLINE.title}>
      <p>{isOpen ? OFFLINE.currentText : link === "expired" ? OFFLINE.signedOut : OFFLINE.text}</p>
      <FactList>
        <Fact name={OFFLINE.since}>
          {heardAt === null ? OFFLINE.never : OFFLINE.ago(span(now - heardAt))}
        </Fact>
        {!isOpen && link !== "expired" && (
          <Fact name={OFFLINE.next}>
            {retryAt === null ? OFFLINE.soon : OFFLINE.inTime(span(retryAt - now))}
          </Fact>
        )}
      </FactList>
      {!isOpen &&
        (link === "expired" ? (
          <a href="/login">{BANNER.signIn}</a>
        ) : (
          <div>
            <Button size="xs" onClick={() => client.retryNow()}>
              {OFFLINE.retry}
            </Button>
          </div>
        ))}
      <Panel title={OFFLINE.kept} flush>
        <ReceivedRows />
      </Panel>
    </Page>
  );
}

function ReceivedRows() {
  const client = useClient();
  // Watched, so that the table follows; the others are shown as far as this browser has them.
  useTopic("cluster");
  const received = TOPICS.map(([topic, to]) => ({ topic, to, ...client.view(topic) })).filter(
    ({ loaded }) => loaded,
  );
  if (received.length === 0) return <Empty title={OFFLINE.nothing} />;
  return (
    <DataTable name={OFFLINE.kept} columns={OFFLINE.columns}>
      {received.map(({ topic, to, rows, asOf }) => (
        <tr key={topic}>
          <th scope="row">
            <Link to={to}>{OFFLINE.topics[topic]}</Link>
          </th>
          <td>{count(rows.size)}</td>
          <td>{asOf?.time ? dateTime(asOf.time) : OFFLINE.never}</td>
        </tr>
      ))}
    </DataTable>
  );
}

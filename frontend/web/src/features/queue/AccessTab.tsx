import { Link } from "react-router";
import { useQueueAccess } from "../../api/details.ts";
import { useMe } from "../../api/useMe.ts";
import { ACCESS } from "../../i18n/queue.ts";
import { DataTable } from "../../ui/DataTable.tsx";
import { Panel } from "../../ui/Panel.tsx";
import { QueryResult } from "../../ui/QueryResult.tsx";
import { QueueLink } from "../../ui/QueueLink.tsx";

/** Who may edit the queue, and by which role. */
export function AccessTab({ name }: { name: string }) {
  const query = useQueueAccess(name);
  const me = useMe();
  return (
    <QueryResult query={query}>
      {({ items }) => (
        <Panel
          title={ACCESS.title}
          note={ACCESS.note}
          tools={me?.isAdmin === true && <Link to="/settings/users">{ACCESS.manage}</Link>}
          flush
        >
          <DataTable name={ACCESS.title} columns={ACCESS.columns}>
            {items.map(({ username, displayName, role, subtree, mayEdit }) => (
              <tr key={`${username} ${role} ${subtree}`}>
                <th scope="row" title={username}>
                  {displayName}
                </th>
                <td>{ACCESS.roles[role] ?? role}</td>
                <td>{subtree === null ? ACCESS.everywhere : <QueueLink queue={subtree} />}</td>
                <td>{mayEdit ? ACCESS.yes : role === "editor" ? ACCESS.no : ACCESS.none}</td>
              </tr>
            ))}
          </DataTable>
        </Panel>
      )}
    </QueryResult>
  );
}

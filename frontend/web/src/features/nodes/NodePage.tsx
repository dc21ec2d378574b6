import { Link, useParams } from "react-router";
import { useNodeDetail, useNodePods } from "../../api/details.ts";
import { NODE_PAGE, TILE } from "../../i18n/nodes.ts";
import { cores, gibibytes, gpus, memory, modelName, utilisation } from "../../i18n/numbers.ts";
import { allocatedOf, NONE } from "../../i18n/ui.ts";
import { useSingle } from "../../live/react.tsx";
import type { Device, Node, NodePod } from "../../model/rows.ts";
import { DataTable } from "../../ui/DataTable.tsx";
import { Elapsed } from "../../ui/Elapsed.tsx";
import { Fact, FactList } from "../../ui/FactList.tsx";
import { Page } from "../../ui/Page.tsx";
import { Panel } from "../../ui/Panel.tsx";
import { nodePath } from "../../ui/paths.ts";
import { QueryResult } from "../../ui/QueryResult.tsx";
import { QueueLink } from "../../ui/QueueLink.tsx";
import { RichText } from "../../ui/RichText.tsx";
import { Badge, StateBadge } from "../../ui/StateBadge.tsx";
import { Empty, Failure, Loading } from "../../ui/States.tsx";
import { type TabLink, TabNav } from "../../ui/TabNav.tsx";
import { WorkloadLink } from "../../ui/WorkloadLink.tsx";
import { YamlView } from "../../ui/YamlView.tsx";
import styles from "./Nodes.module.css";

/** Show one node: its GPUs and the pods that hold them, all its pods, its taints and labels. */
export function NodePage() {
  const { name = "", tab = "summary" } = useParams();
  const { row: node, loaded: isLoaded, problem } = useSingle(`node:${name}`);
  const allNodesLink = <Link to="/nodes">{NODE_PAGE.all}</Link>;
  if (problem !== null && problem.status !== 404) {
    return <Failure title={problem.title} detail={problem.detail} />;
  }
  if (node === undefined) {
    return (
      <Page title={name} note={allNodesLink}>
        {isLoaded || problem !== null ? (
          <Empty title={NODE_PAGE.missingTitle}>
            <RichText text={NODE_PAGE.missing} parts={{ link: allNodesLink }} />
          </Empty>
        ) : (
          <Loading rows={10} />
        )}
      </Page>
    );
  }
  const path = nodePath(name);
  const tabs: TabLink[] = [
    { key: "summary", name: NODE_PAGE.tabs.summary, to: path },
    { key: "yaml", name: NODE_PAGE.tabs.yaml, to: `${path}/yaml` },
  ];
  return (
    <Page title={name} note={allNodesLink}>
      <TabNav name={NODE_PAGE.tabList} tabs={tabs} active={tab} />
      {tab === "yaml" ? (
        <YamlView path={`${path}/yaml`} file={`${name}.yaml`} />
      ) : (
        <Summary node={node} />
      )}
    </Page>
  );
}

function Summary({ node }: { node: Node }) {
  return (
    <>
      <FactList>
        <Fact name={NODE_PAGE.state}>
          {!node.ready && <Badge tone="bad">{TILE.notReady}</Badge>}
          {node.cordoned && <Badge tone="warn">{TILE.cordoned}</Badge>}
          {node.ready && !node.cordoned && <Badge tone="good">{NODE_PAGE.ready}</Badge>}
        </Fact>
        <Fact name={NODE_PAGE.model}>{node.model === "" ? NONE : modelName(node.model)}</Fact>
        <Fact name={NODE_PAGE.gpus}>{allocatedOf(node.gpuAllocated, node.gpuTotal)}</Fact>
        {node.gpuTotal > 0 && (
          <Fact name={NODE_PAGE.utilisation}>
            {NODE_PAGE.utilisationText(node.gpuUtilisation, node.gpuIdle)}
          </Fact>
        )}
        {node.gpuMemoryBytes > 0 && (
          <Fact name={NODE_PAGE.gpuMemory}>{gibibytes(node.gpuMemoryBytes)}</Fact>
        )}
        <Fact name={NODE_PAGE.cpu}>
          {NODE_PAGE.cpuText(node.cpu.allocated, node.cpu.allocatable)}
        </Fact>
        <Fact name={NODE_PAGE.memory}>
          {NODE_PAGE.memoryText(node.memory.allocated, node.memory.allocatable)}
        </Fact>
        <Fact name={NODE_PAGE.pool}>{node.pool || NONE}</Fact>
        <Fact name={NODE_PAGE.zone}>{node.zone || NONE}</Fact>
        <Fact name={NODE_PAGE.rack}>{node.rack || NONE}</Fact>
        {node.taints.length > 0 && <Fact name={NODE_PAGE.taints}>{node.taints.join(", ")}</Fact>}
      </FactList>
      <Panel title={NODE_PAGE.devices} note={NODE_PAGE.devicesNote} flush>
        {node.devices.length === 0 ? (
          <Empty title={NODE_PAGE.noGpus} />
        ) : (
          <DataTable
            name={NODE_PAGE.devices}
            columns={NODE_PAGE.deviceColumns}
            numberColumns={[2, 3]}
          >
            {node.devices.map((device) => (
              <DeviceRow key={device.index} device={device} />
            ))}
          </DataTable>
        )}
      </Panel>
      <Pods node={node.name} />
      <Labels node={node.name} />
    </>
  );
}

function DeviceRow({ device }: { device: Device }) {
  const { index, state, used, group, holders } = device;
  const queues = [...new Set(holders.map(({ queue }) => queue))].filter((queue) => queue !== "");
  return (
    <tr>
      <th scope="row">{index}</th>
      <td title={group}>{NODE_PAGE.states[state] ?? state}</td>
      <td>{gpus(used)}</td>
      <td>
        {holders.length === 0 ? NONE : utilisation(device.utilisation)}
        {device.idleSince !== null && (
          <div className={styles.sub}>
            <RichText
              text={NODE_PAGE.idle}
              parts={{ time: <Elapsed since={device.idleSince} /> }}
            />
          </div>
        )}
      </td>
      <td>
        {holders.length === 0
          ? NONE
          : holders.map(({ pod, workload, gpu }) => (
              <div key={pod}>
                {workload === "" ? (
                  pod
                ) : (
                  <WorkloadLink workload={workload} name={pod.split("/").at(-1) ?? pod} />
                )}{" "}
                {gpu < 1 && <span className={styles.sub}>{gpus(gpu)}</span>}
              </div>
            ))}
      </td>
      <td>
        {queues.length === 0
          ? NONE
          : queues.map((queue) => <QueueLink key={queue} queue={queue} />)}
      </td>
    </tr>
  );
}

function Pods({ node }: { node: string }) {
  const query = useNodePods(node);
  return (
    <Panel title={NODE_PAGE.pods} flush>
      <QueryResult query={query}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title={NODE_PAGE.noPods}>{NODE_PAGE.noPodsText}</Empty>
          ) : (
            <DataTable
              name={NODE_PAGE.pods}
              columns={NODE_PAGE.podColumns}
              numberColumns={[4, 6, 7, 8]}
            >
              {items.map((pod) => (
                <PodRow key={`${pod.namespace}/${pod.name}`} pod={pod} />
              ))}
            </DataTable>
          )
        }
      </QueryResult>
    </Panel>
  );
}

function PodRow({ pod }: { pod: NodePod }) {
  return (
    <tr>
      <th scope="row" title={pod.namespace}>
        {pod.workload === "" ? pod.name : <WorkloadLink workload={pod.workload} name={pod.name} />}
      </th>
      <td>
        <StateBadge state={pod.state} />
      </td>
      <td>{pod.queue === "" ? NONE : <QueueLink queue={pod.queue} />}</td>
      <td>{pod.user || NONE}</td>
      <td>{gpus(pod.gpu)}</td>
      <td>{pod.devices.length === 0 ? NONE : pod.devices.join(", ")}</td>
      <td>{cores(pod.cpuMilli)}</td>
      <td>{memory(pod.memoryBytes)}</td>
      <td>{pod.startedAt === null ? NONE : <Elapsed since={pod.startedAt} />}</td>
    </tr>
  );
}

function Labels({ node }: { node: string }) {
  const query = useNodeDetail(node);
  return (
    <Panel title={NODE_PAGE.labels}>
      <QueryResult query={query} rows={3}>
        {({ labels }) => {
          const entries = Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1));
          if (entries.length === 0) return <Empty title={NODE_PAGE.noLabels} />;
          return (
            <ul className={styles.labels}>
              {entries.map(([key, value]) => (
                <li key={key}>
                  <code>{`${key}=${value}`}</code>
                </li>
              ))}
            </ul>
          );
        }}
      </QueryResult>
    </Panel>
  );
}

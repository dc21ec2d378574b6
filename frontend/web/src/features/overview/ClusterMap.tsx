import { useMemo } from "react";
import { Link } from "react-router";
import { BarList } from "../../charts/BarList.tsx";
import { count, modelName } from "../../i18n/numbers.ts";
import { FREE_NODES, GPU_MAP } from "../../i18n/overview.ts";
import { useTopic } from "../../live/react.tsx";
import { useHues } from "../../live/useHues.ts";
import { nodesByModel } from "../../model/freeNodes.ts";
import type { Cluster } from "../../model/rows.ts";
import { GpuMap } from "../../ui/GpuMap.tsx";
import { Panel } from "../../ui/Panel.tsx";
import { Empty, Loading } from "../../ui/States.tsx";
import styles from "./Overview.module.css";

const COLLATOR = new Intl.Collator("en", { numeric: true });
/** More nodes are no picture any more but thousands of dots, which also cost the browser its rest. */
const MOST_NODES_ON_MAP = 400;

/** Where the free GPUs are: a map of all devices, or in a large cluster how many nodes have how many free. */
export function ClusterMap({ cluster }: { cluster: Cluster }) {
  return cluster.nodes.total > MOST_NODES_ON_MAP ? <FreeNodes cluster={cluster} /> : <DeviceMap />;
}

function DeviceMap() {
  const { rows, loaded } = useTopic("nodes");
  const hues = useHues();
  const nodes = useMemo(
    () => [...rows.values()].sort((a, b) => COLLATOR.compare(a.name, b.name)),
    [rows],
  );
  return (
    <Panel title={GPU_MAP.title} note={GPU_MAP.note} tools={<Link to="/nodes">{GPU_MAP.all}</Link>}>
      {!loaded ? (
        <Loading rows={5} />
      ) : nodes.length === 0 ? (
        <Empty title={GPU_MAP.emptyTitle}>{GPU_MAP.empty}</Empty>
      ) : (
        <GpuMap nodes={nodes} hues={hues} />
      )}
    </Panel>
  );
}

function FreeNodes({ cluster }: { cluster: Cluster }) {
  return (
    <Panel
      title={FREE_NODES.title}
      note={FREE_NODES.note}
      tools={<Link to="/nodes">{GPU_MAP.all}</Link>}
    >
      {nodesByModel(cluster).map(({ model, nodes, counts }) => (
        <section key={model} aria-label={FREE_NODES.model(modelName(model), nodes)}>
          <h3 className={styles.modelHead}>{FREE_NODES.model(modelName(model), nodes)}</h3>
          <BarList
            summary={FREE_NODES.model(modelName(model), nodes)}
            columns={FREE_NODES.columns}
            file={`free-gpus-${model}.csv`}
            bars={counts.map((each) => ({
              key: String(each.free),
              label: FREE_NODES.free(each.free),
              value: each.nodes,
              shown: count(each.nodes),
              ...(each.free > 0 ? { to: "/nodes?free=true" } : { color: "var(--bar-over)" }),
            }))}
          />
        </section>
      ))}
    </Panel>
  );
}

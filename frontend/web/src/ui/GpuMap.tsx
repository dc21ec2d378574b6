import { memo } from "react";
import { modelName } from "../i18n/numbers.ts";
import { allocatedOf, mapText } from "../i18n/ui.ts";
import { groupBy } from "../model/group.ts";
import type { Hue } from "../model/hues.ts";
import type { Device, Node } from "../model/rows.ts";
import styles from "./GpuMap.module.css";
import { hueStyle } from "./hueStyle.ts";

type Hues = ReadonlyMap<string, Hue>;
type Props = { nodes: readonly Node[]; hues: Hues };

/** All GPUs of the cluster at a glance: one block per node, one cell per device. */
export function GpuMap({ nodes, hues }: Props) {
  const models = groupBy(
    nodes.filter((node) => node.gpuTotal > 0),
    (node) => node.model,
  );
  const size = nodes.length > 120 ? "8px" : "11px";
  return (
    <div className={styles.map} style={{ "--cell": size } as React.CSSProperties}>
      {[...models].map(([model, members]) => (
        <div key={model} role="img" aria-label={modelText(model, members)}>
          <div className={styles.model}>
            <b>{modelName(model)}</b>
            <span>{usedText(members)}</span>
          </div>
          <div className={styles.nodes}>
            {members.map((node) => (
              <Block key={node.name} node={node} hues={hues} />
            ))}
          </div>
        </div>
      ))}
    </div>
  );
}

function sums(nodes: readonly Node[]): [allocated: number, total: number] {
  return [
    nodes.reduce((sum, node) => sum + node.gpuAllocated, 0),
    nodes.reduce((sum, node) => sum + node.gpuTotal, 0),
  ];
}

function usedText(nodes: readonly Node[]): string {
  return allocatedOf(...sums(nodes));
}

function modelText(model: string, nodes: readonly Node[]): string {
  return mapText(model, ...sums(nodes), nodes.length);
}

const Block = memo(function Block({ node, hues }: { node: Node; hues: Hues }) {
  const isAway = !node.ready || node.cordoned;
  return (
    <div className={`${styles.node} ${isAway ? styles.away : ""}`} title={node.name}>
      {node.devices.map((device) => (
        <MiniCell key={device.index} device={device} hues={hues} />
      ))}
    </div>
  );
});

export function MiniCell({ device, hues }: { device: Device; hues: Hues }) {
  const holder = device.holders[0];
  if (device.state === "whole" && holder !== undefined) {
    return <span className={styles.cell} style={hueStyle(hues.get(holder.queue))} />;
  }
  return (
    <span className={`${styles.cell} ${styles[device.state] ?? styles.free}`}>
      {device.holders.map((each) => (
        <span
          key={each.pod}
          style={{ height: `${100 * each.gpu}%`, ...hueStyle(hues.get(each.queue)) }}
        />
      ))}
    </span>
  );
}

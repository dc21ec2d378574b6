import { type KeyboardEvent, memo } from "react";
import type { Hue } from "../../model/hues.ts";
import type { Node } from "../../model/rows.ts";
import { cores, gigabytes, gpus } from "../../model/units.ts";
import { GpuCell } from "../../ui/GpuCell.tsx";
import { Badge } from "../../ui/StateBadge.tsx";
import styles from "./Nodes.module.css";

type Props = {
  node: Node;
  hues: ReadonlyMap<string, Hue>;
  /** The device of this node that Tab reaches, or null if another node has it. */
  active: number | null;
  rowIndex: number;
  onOpen: (node: string, index: number, target: HTMLElement) => void;
  onKeyDown: (event: KeyboardEvent, node: string, index: number) => void;
};

export const NodeTile = memo(function NodeTile({
  node,
  hues,
  active,
  rowIndex,
  onOpen,
  onKeyDown,
}: Props) {
  const isAway = !node.ready || node.cordoned;
  const free = node.gpuTotal - node.gpuAllocated;
  return (
    <div
      role="row"
      aria-rowindex={rowIndex}
      className={`${styles.tile} ${isAway ? styles.away : ""}`}
    >
      <div role="rowheader" className={styles.head}>
        <span className={styles.name} title={`${node.name}, ${node.zone} ${node.rack}`}>
          {node.name}
        </span>
        {!node.ready && <Badge tone="bad">not ready</Badge>}
        {node.cordoned && <Badge tone="warn">cordoned</Badge>}
        <span className={styles.free}>
          {node.gpuTotal === 0 ? "no GPUs" : `${gpus(free)} free`}
        </span>
      </div>
      <div role="presentation" className={styles.cells}>
        {node.devices.map((device) => (
          <GpuCell
            key={device.index}
            node={node.name}
            device={device}
            hues={hues}
            isActive={active === device.index}
            onOpen={onOpen}
            onKeyDown={onKeyDown}
          />
        ))}
      </div>
      <div role="gridcell" className={styles.meters}>
        <Meter
          word="CPU"
          used={node.cpu.allocated}
          total={node.cpu.allocatable}
          shown={cores}
          unit="cores"
        />
        <Meter
          word="Mem"
          used={node.memory.allocated}
          total={node.memory.allocatable}
          shown={gigabytes}
          unit="GB"
        />
      </div>
    </div>
  );
});

type MeterProps = {
  word: string;
  used: number;
  total: number;
  shown: (value: number) => string;
  unit: string;
};

function Meter({ word, used, total, shown, unit }: MeterProps) {
  const percent = total > 0 ? Math.min(100, (100 * used) / total) : 0;
  return (
    <div title={`${word}: ${shown(used)} of ${shown(total)} ${unit} requested`}>
      {word} {Math.round(percent)} %
      <div className={styles.meter} aria-hidden>
        <i style={{ width: `${percent}%` }} />
      </div>
    </div>
  );
}

import { type KeyboardEvent, memo } from "react";
import { Link } from "react-router";
import { RESTING } from "../../i18n/binds.ts";
import { TILE } from "../../i18n/nodes.ts";
import type { Hue } from "../../model/hues.ts";
import type { Node } from "../../model/rows.ts";
import { GpuCell } from "../../ui/GpuCell.tsx";
import { useNow } from "../../ui/now.ts";
import { nodePath } from "../../ui/paths.ts";
import { Badge } from "../../ui/StateBadge.tsx";
import { restEnd } from "./lines.ts";
import styles from "./Nodes.module.css";

type Props = {
  node: Node;
  hues: ReadonlyMap<string, Hue>;
  /** The device of this node that the Tab key reaches, or null if it is on another node. */
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
        <span className={styles.name} title={TILE.title(node.name, node.zone, node.rack)}>
          <Link to={nodePath(node.name)} tabIndex={-1}>
            {node.name}
          </Link>
        </span>
        {!node.ready && <Badge tone="bad">{TILE.notReady}</Badge>}
        {node.cordoned && <Badge tone="warn">{TILE.cordoned}</Badge>}
        {node.rest && <RestBadge node={node} />}
        {node.gpuIdle !== null && node.gpuIdle > 0 && (
          <span title={TILE.idleTitle(node.gpuIdle)}>
            <Badge tone="warn">{TILE.idle(node.gpuIdle)}</Badge>
          </span>
        )}
        <span className={styles.free}>{TILE.free(free, node.gpuTotal)}</span>
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
        <Meter name={TILE.cpu} amounts={node.cpu} detail={TILE.cpuDetail} />
        <Meter name={TILE.memory} amounts={node.memory} detail={TILE.memoryDetail} />
      </div>
    </div>
  );
});

/** Only tiles of nodes that rest follow the clock. */
function RestBadge({ node }: { node: Node }) {
  if (restEnd(node, useNow()) === null) return null;
  return (
    <span title={RESTING.badgeTitle(node.rest?.until ?? "")}>
      <Badge tone="warn">{RESTING.badge}</Badge>
    </span>
  );
}

type MeterProps = {
  name: string;
  amounts: { allocated: number; allocatable: number };
  detail: (used: number, total: number) => string;
};

function Meter({ name, amounts, detail }: MeterProps) {
  const { allocated, allocatable } = amounts;
  const percent = allocatable > 0 ? Math.min(100, (100 * allocated) / allocatable) : 0;
  return (
    <div title={detail(allocated, allocatable)}>
      {TILE.percent(name, percent)}
      <div className={styles.meter} aria-hidden>
        <i style={{ width: `${percent}%` }} />
      </div>
    </div>
  );
}

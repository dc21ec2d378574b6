import { useElementSize, useMergedRef } from "@mantine/hooks";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, useCallback, useMemo, useRef, useState } from "react";
import { NODES } from "../../i18n/nodes.ts";
import type { Hue } from "../../model/hues.ts";
import type { Node } from "../../model/rows.ts";
import { useLatest } from "../../ui/useLatest.ts";
import { useRemeasure } from "../../ui/useRemeasure.ts";
import { DevicePopover } from "./DevicePopover.tsx";
import { type Grouping, layOut, nextCell } from "./lines.ts";
import styles from "./Nodes.module.css";
import { NodeTile } from "./NodeTile.tsx";

type Props = { nodes: readonly Node[]; grouping: Grouping; hues: ReadonlyMap<string, Hue> };
type Cell = { readonly node: string; readonly index: number };

const TILE_WIDTH = 218;
const GAP = 10;
const GROUP_HEIGHT = 40;

/** Every node as a tile of GPU cells. The arrow keys move from device to device across all tiles. */
export function NodeGrid({ nodes, grouping, hues }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const { ref: sized, width } = useElementSize();
  const perLine = Math.max(1, Math.floor((width - 28 + GAP) / (TILE_WIDTH + GAP)));
  const lines = useMemo(() => layOut(nodes, grouping, perLine), [nodes, grouping, perLine]);
  const order = useMemo(
    () => lines.flatMap((line) => (line.kind === "tiles" ? line.nodes : [])),
    [lines],
  );
  const [active, setActive] = useState<Cell | null>(null);
  const [opened, setOpened] = useState<(Cell & { target: HTMLElement }) | null>(null);
  const tileHeight = nodes.some((node) => node.gpuTotal > 8) ? 128 : 104;
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: (index) => (lines[index]?.kind === "group" ? GROUP_HEIGHT : tileHeight + GAP),
    getItemKey: (index) => lines[index]?.key ?? index,
    overscan: 4,
  });
  useRemeasure(virtual, `${perLine} ${tileHeight} ${grouping}`);

  const latest = useLatest({ order, perLine, lines });
  const onOpen = useCallback((node: string, index: number, target: HTMLElement) => {
    setActive({ node, index });
    setOpened({ node, index, target });
  }, []);
  const onKeyDown = useCallback(
    (event: KeyboardEvent, node: string, index: number) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        onOpen(node, index, event.currentTarget as HTMLElement);
        return;
      }
      const next = nextCell(
        latest.current.order,
        latest.current.perLine,
        { node, index },
        event.key,
      );
      if (next === null) return;
      event.preventDefault();
      setActive(next);
      const line = latest.current.lines.findIndex(
        (each) => each.kind === "tiles" && each.nodes.some((member) => member.name === next.node),
      );
      virtual.scrollToIndex(line);
      requestAnimationFrame(() =>
        scroller.current
          ?.querySelector<HTMLElement>(`[data-cell="${CSS.escape(next.node)}/${next.index}"]`)
          ?.focus(),
      );
    },
    [latest, onOpen, virtual],
  );
  const home = active ?? firstCell(order);

  return (
    <div
      className={styles.scroll}
      ref={useMergedRef(scroller, sized)}
      onScroll={() => setOpened(null)}
    >
      <div
        role="grid"
        aria-label={NODES.grid}
        aria-rowcount={order.length + lines.length}
        style={{ height: virtual.getTotalSize(), position: "relative" }}
      >
        {virtual.getVirtualItems().map(({ index, start, size, key }) => {
          const line = lines[index];
          if (line === undefined) return null;
          const place = { transform: `translateY(${start}px)`, height: size };
          if (line.kind === "group") {
            return (
              <div
                key={key}
                role="row"
                className={styles.line}
                style={{ ...place, display: "block" }}
              >
                <div role="rowheader" className={styles.group}>
                  {line.title} <span>{line.note}</span>
                </div>
              </div>
            );
          }
          return (
            <div
              key={key}
              role="presentation"
              className={styles.line}
              style={{
                ...place,
                paddingBottom: GAP,
                gridTemplateColumns: `repeat(${perLine}, minmax(0, 1fr))`,
              }}
            >
              {line.nodes.map((node, at) => (
                <NodeTile
                  key={node.name}
                  node={node}
                  hues={hues}
                  active={home?.node === node.name ? home.index : null}
                  rowIndex={index * perLine + at + 1}
                  onOpen={onOpen}
                  onKeyDown={onKeyDown}
                />
              ))}
            </div>
          );
        })}
      </div>
      {opened !== null && (
        <DevicePopover
          node={nodes.find((node) => node.name === opened.node)}
          index={opened.index}
          target={opened.target}
          hues={hues}
          onClose={() => setOpened(null)}
        />
      )}
    </div>
  );
}

function firstCell(order: readonly Node[]): Cell | null {
  const node = order.find((each) => each.devices.length > 0);
  return node === undefined ? null : { node: node.name, index: 0 };
}

import { type KeyboardEvent, memo } from "react";
import { deviceText } from "../i18n/ui.ts";
import type { Hue } from "../model/hues.ts";
import type { Device } from "../model/rows.ts";
import styles from "./GpuCell.module.css";
import { hueStyle } from "./hueStyle.ts";

type Props = {
  node: string;
  device: Device;
  hues: ReadonlyMap<string, Hue>;
  isActive: boolean;
  onOpen: (node: string, index: number, target: HTMLElement) => void;
  onKeyDown: (event: KeyboardEvent, node: string, index: number) => void;
};

/** One GPU device: hue and pattern show its queue, the height of the filling its usage. */
export const GpuCell = memo(function GpuCell({
  node,
  device,
  hues,
  isActive,
  onOpen,
  onKeyDown,
}: Props) {
  const isWhole = device.state === "whole" && device.holders[0] !== undefined;
  const queue = device.holders[0]?.queue ?? "";
  return (
    <div
      role="gridcell"
      tabIndex={isActive ? 0 : -1}
      data-cell={`${node}/${device.index}`}
      data-state={device.state}
      data-idle={device.idleSince !== null || undefined}
      data-queue={device.holders.map((holder) => holder.queue).join(" ")}
      aria-label={deviceText(device)}
      title={deviceText(device)}
      className={`${styles.cell} ${isWhole ? "" : (styles[device.state] ?? styles.free)}`}
      style={isWhole ? hueStyle(hues.get(queue)) : undefined}
      onClick={(event) => onOpen(node, device.index, event.currentTarget)}
      onKeyDown={(event) => onKeyDown(event, node, device.index)}
    >
      {!isWhole &&
        device.holders.map((holder) => (
          <span
            key={holder.pod}
            style={{ height: `${100 * holder.gpu}%`, ...hueStyle(hues.get(holder.queue)) }}
          />
        ))}
    </div>
  );
});

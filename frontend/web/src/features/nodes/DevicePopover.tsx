import { Popover } from "@mantine/core";
import { Link } from "react-router";
import { DEVICE, NODE_PAGE } from "../../i18n/nodes.ts";
import { useSingle } from "../../live/react.tsx";
import { useQueueLabels } from "../../live/useQueueLabels.ts";
import type { Hue } from "../../model/hues.ts";
import type { Node } from "../../model/rows.ts";
import { Elapsed } from "../../ui/Elapsed.tsx";
import { nodePath } from "../../ui/paths.ts";
import { QueueMark } from "../../ui/QueueMark.tsx";
import { RichText } from "../../ui/RichText.tsx";
import styles from "./Nodes.module.css";

type Props = {
  node: Node | undefined;
  index: number;
  target: HTMLElement;
  hues: ReadonlyMap<string, Hue>;
  onClose: () => void;
};

/** The pods that hold one GPU. It is anchored to the cell and closes when the grid scrolls. */
export function DevicePopover({ node, index, target, hues, onClose }: Props) {
  const label = useQueueLabels();
  const device = node?.devices[index];
  if (node === undefined || device === undefined) return null;
  const box = target.getBoundingClientRect();
  return (
    <Popover
      opened
      onChange={(opened) => !opened && onClose()}
      width={300}
      shadow="md"
      withArrow
      trapFocus
      returnFocus
      // The anchor is no control, so it must not claim to open something; the cell does.
      withRoles={false}
    >
      <Popover.Target>
        <div
          style={{
            position: "fixed",
            left: box.left,
            top: box.top,
            width: box.width,
            height: box.height,
            pointerEvents: "none",
          }}
        />
      </Popover.Target>
      <Popover.Dropdown
        role="dialog"
        aria-label={DEVICE.title(index, node.name)}
        tabIndex={-1}
        data-autofocus
      >
        <Link to={nodePath(node.name)}>
          <b>{DEVICE.title(index, node.name)}</b>
        </Link>
        <div>{DEVICE.model(node.model, node.gpuMemoryBytes)}</div>
        {device.holders.length === 0 ? (
          <div>{device.state === "unhealthy" ? DEVICE.unhealthy : DEVICE.free}</div>
        ) : (
          <ul className={styles.details}>
            {device.holders.map((holder) => (
              <li key={holder.pod}>
                <QueueMark hue={hues.get(holder.queue)} />
                <Link to={`/workloads/${holder.workload}/pods`}>
                  {holder.pod.split("/").at(-1)}
                </Link>
                <span className={styles.sub}>{DEVICE.holder(holder.gpu, label(holder.queue))}</span>
                {holder.workload !== "" && <Owner workload={holder.workload} />}
              </li>
            ))}
          </ul>
        )}
        {device.holders.length > 0 && (
          <div className={styles.sub}>
            {DEVICE.utilisation(device.utilisation)}
            {device.idleSince !== null && (
              <>
                {" · "}
                <RichText
                  text={NODE_PAGE.idle}
                  parts={{ time: <Elapsed since={device.idleSince} /> }}
                />
              </>
            )}
          </div>
        )}
        {device.group !== "" && <div className={styles.sub}>{DEVICE.group(device.group)}</div>}
      </Popover.Dropdown>
    </Popover>
  );
}

/** Whose workload it is, and since when it runs. */
function Owner({ workload }: { workload: string }) {
  const { row } = useSingle(`workload:${workload}`);
  if (row === undefined) return null;
  return (
    <span className={styles.sub}>
      {DEVICE.user(row.user)}
      {row.startedAt !== null && (
        <>
          {" · "}
          <RichText text={DEVICE.since} parts={{ time: <Elapsed since={row.startedAt} /> }} />
        </>
      )}
    </span>
  );
}

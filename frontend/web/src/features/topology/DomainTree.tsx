import { Link } from "react-router";
import { TOPOLOGY } from "../../i18n/topology.ts";
import { groupBy } from "../../model/group.ts";
import type { Topology, TopologyDomain } from "../../model/rows.ts";
import { nodePath } from "../../ui/paths.ts";
import styles from "./Topology.module.css";

/** Beyond this a list of boxes helps nobody; the innermost level is then counted only. */
const MOST_BOXES = 1_500;

/** Domains as boxes inside boxes, widest level outside; an innermost box that is one node links to it. */
export function DomainTree({ topology }: { topology: Topology }) {
  const children = groupBy(topology.domains, ({ parent }) => parent ?? "");
  const last = topology.levels.length - 1;
  const deepest = topology.domains.length > MOST_BOXES && last > 0 ? last - 1 : last;
  return (
    <ul className={styles.boxes}>
      {(children.get("") ?? []).map((domain) => (
        <Domain key={domain.id} domain={domain} childrenOf={children} deepest={deepest} />
      ))}
    </ul>
  );
}

type Props = {
  domain: TopologyDomain;
  childrenOf: ReadonlyMap<string, readonly TopologyDomain[]>;
  deepest: number;
};

function Domain({ domain, childrenOf, deepest }: Props) {
  const { id, level, name, nodes, gpuTotal, gpuAllocated, gpuFree, largestGang } = domain;
  const inner = level < deepest ? (childrenOf.get(id) ?? []) : [];
  const percent = gpuTotal > 0 ? Math.min(100, (100 * gpuAllocated) / gpuTotal) : 0;
  const node = nodes.length === 1 ? nodes[0] : undefined;
  return (
    <li className={styles.box}>
      <div className={styles.head}>
        <b className={styles.name} title={id}>
          {node === undefined ? name : <Link to={nodePath(node)}>{name}</Link>}
        </b>
        <span className={styles.sub}>{TOPOLOGY.free(gpuFree, gpuTotal)}</span>
      </div>
      <div className={styles.meter} aria-hidden>
        <i style={{ width: `${percent}%` }} />
      </div>
      <div className={styles.sub}>
        {[
          ...(node === undefined ? [TOPOLOGY.nodes(nodes.length)] : []),
          TOPOLOGY.workloads(domain.workloads),
          TOPOLOGY.gang(largestGang),
        ].join(" · ")}
      </div>
      {inner.length > 0 && (
        <ul className={styles.boxes}>
          {inner.map((each) => (
            <Domain key={each.id} domain={each} childrenOf={childrenOf} deepest={deepest} />
          ))}
        </ul>
      )}
    </li>
  );
}

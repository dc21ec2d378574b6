import { BULLET_LEGEND, type BulletAmounts, bulletText } from "../i18n/ui.ts";
import type { Queue, Resource } from "../model/rows.ts";
import styles from "./BulletBar.module.css";

export type Bullet = BulletAmounts & { readonly nonPreemptible: number };

/** Return what the bar of a queue shows of one resource. */
export function bulletOf(queue: Queue, resource: Resource): Bullet {
  return {
    resource,
    allocated: queue.allocated[resource],
    nonPreemptible: queue.allocatedNonPreemptible[resource],
    requested: queue.requested[resource],
    quota: queue.quota[resource],
    limit: queue.limit[resource],
    share: queue.share?.[resource] ?? null,
  };
}

/** Return the largest amount that a bar must show; a far-away limit is left out. */
export function bulletReach(bullet: Bullet): number {
  const { allocated, requested, quota, share, limit } = bullet;
  const reach = Math.max(allocated, requested, typeof quota === "number" ? quota : 0, share ?? 0);
  return typeof limit === "number" && limit <= reach * 1.6 ? Math.max(reach, limit) : reach;
}

/** Usage against bounds: allocated amounts stacked, pending requests hatched, marks for the bounds. */
export function BulletBar({ bullet, max }: { bullet: Bullet; max: number }) {
  const { allocated, nonPreemptible, requested, share } = bullet;
  const quota = bullet.quota === "unlimited" ? Number.POSITIVE_INFINITY : (bullet.quota ?? 0);
  const limit = typeof bullet.limit === "number" ? bullet.limit : null;
  // Where the parts of the stacked bar end: non-preemptible, then within quota; over quota ends at `allocated`.
  const nonPreemptibleEnd = Math.min(nonPreemptible, allocated);
  const withinQuotaEnd = Math.max(nonPreemptibleEnd, Math.min(allocated, quota));
  const left = (value: number) => `${(100 * Math.min(value, max)) / Math.max(max, 1e-9)}%`;
  const part = (name: string | undefined, from: number, to: number) =>
    to > from && (
      <span
        className={`${styles.part} ${name}`}
        style={{ left: left(from), right: `calc(100% - ${left(to)})` }}
      />
    );
  return (
    <div className={styles.bar} role="img" aria-label={bulletText(bullet)}>
      <span className={styles.track} />
      {part(styles.nonPreemptible, 0, nonPreemptibleEnd)}
      {part(styles.inside, nonPreemptibleEnd, withinQuotaEnd)}
      {part(styles.over, withinQuotaEnd, allocated)}
      {part(styles.demand, allocated, requested)}
      {quota <= max && quota > 0 && <span className={styles.quota} style={{ left: left(quota) }} />}
      {share !== null && share > 0 && (
        <span className={styles.share} style={{ left: left(share) }} />
      )}
      {limit !== null && limit <= max && (
        <span className={styles.limit} style={{ left: left(limit) }} />
      )}
    </div>
  );
}

export function BulletLegend() {
  const keys = [
    [styles.nonPreemptible, BULLET_LEGEND.nonPreemptible, true],
    [styles.inside, BULLET_LEGEND.inQuota, true],
    [styles.over, BULLET_LEGEND.overQuota, true],
    [styles.demand, BULLET_LEGEND.waiting, true],
    [styles.quota, BULLET_LEGEND.quota, false],
    [styles.share, BULLET_LEGEND.share, false],
    [styles.limit, BULLET_LEGEND.limit, false],
  ] as const;
  return (
    <div className={styles.legend} aria-hidden>
      {keys.map(([name, label, isPart]) => (
        <span className={styles.key} key={label}>
          <span className={styles.swatch}>
            <span className={isPart ? `${styles.part} ${name}` : name} />
          </span>
          {label}
        </span>
      ))}
    </div>
  );
}

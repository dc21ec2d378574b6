import type { Bound, Resource } from "../model/rows.ts";
import { amount, bound, UNIT } from "../model/units.ts";
import styles from "./BulletBar.module.css";

export type Bullet = {
  readonly resource: Resource;
  readonly allocated: number;
  readonly nonPreemptible: number;
  readonly requested: number;
  readonly quota: Bound | undefined;
  readonly limit: Bound | undefined;
  readonly share: number | null;
};

/** The largest amount a bar must have room for; far-away limits are left out. */
export function bulletReach(bullet: Bullet): number {
  const { allocated, requested, quota, share, limit } = bullet;
  const near = Math.max(allocated, requested, typeof quota === "number" ? quota : 0, share ?? 0);
  return typeof limit === "number" && limit <= near * 1.6 ? Math.max(near, limit) : near;
}

/** What a queue uses of what it is entitled to: stacked use, hatched demand, marks for its bounds. */
export function BulletBar({ bullet, max }: { bullet: Bullet; max: number }) {
  const { allocated, nonPreemptible, requested, share } = bullet;
  const quota = bullet.quota === "unlimited" ? Number.POSITIVE_INFINITY : (bullet.quota ?? 0);
  const limit = typeof bullet.limit === "number" ? bullet.limit : null;
  const firm = Math.min(nonPreemptible, allocated);
  const inside = Math.max(firm, Math.min(allocated, quota));
  const left = (value: number) => `${(100 * Math.min(value, max)) / Math.max(max, 1e-9)}%`;
  const part = (name: string | undefined, from: number, to: number) =>
    to > from && (
      <span
        className={`${styles.part} ${name}`}
        style={{ left: left(from), right: `calc(100% - ${left(to)})` }}
      />
    );
  return (
    <div className={styles.bar} role="img" aria-label={bulletWords(bullet)}>
      <span className={styles.track} />
      {part(styles.firm, 0, firm)}
      {part(styles.inside, firm, inside)}
      {part(styles.over, inside, allocated)}
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

export function bulletWords(bullet: Bullet): string {
  const { resource, allocated, requested, quota, limit, share } = bullet;
  const words = [
    `${amount(resource, allocated)} ${UNIT[resource]} allocated`,
    `${amount(resource, requested)} asked for`,
    `quota ${bound(resource, quota)}`,
    `limit ${bound(resource, limit)}`,
  ];
  if (share !== null) words.push(`fair share ${amount(resource, share)}`);
  return words.join(", ");
}

export function BulletLegend() {
  const keys = [
    [styles.firm, "non-preemptible", true],
    [styles.inside, "in quota", true],
    [styles.over, "over quota", true],
    [styles.demand, "waiting", true],
    [styles.quota, "quota", false],
    [styles.share, "fair share", false],
    [styles.limit, "limit", false],
  ] as const;
  return (
    <div className={styles.legend} aria-hidden>
      {keys.map(([name, word, isPart]) => (
        <span className={styles.key} key={word}>
          <span className={styles.swatch}>
            <span className={isPart ? `${styles.part} ${name}` : name} />
          </span>
          {word}
        </span>
      ))}
    </div>
  );
}

import { HEALTH } from "../i18n/health.ts";
import { clockTime } from "../i18n/numbers.ts";
import type { Health } from "../model/rows.ts";

export type HealthLine = { key: string; title: string; text: string };

/** Return the lines of the banner: faults, then processes that hang, then objects set aside; none when all is well. */
export function healthLines(health: Health): HealthLine[] {
  const faults = health.faults.map(({ check, fault, since }) => ({
    key: check,
    title: HEALTH.title(check),
    text: HEALTH.fault(check, fault, clockTime(since)),
  }));
  const hangs = health.processes
    .filter(({ heldObject }) => heldObject !== null)
    .map(({ name, heldObject }) => ({
      key: `held-${name}`,
      title: name,
      text: HEALTH.hangs(heldObject),
    }));
  const setAside = health.setAside.map((object) => ({
    key: `${object.process}-${object.kind}-${object.namespace}-${object.name}`,
    title: HEALTH.setAside(object.process, objectName(object)),
    text: object.reason,
  }));
  return [...faults, ...hangs, ...setAside];
}

function objectName({ kind, namespace, name }: Health["setAside"][number]): string {
  return `${kind} ${namespace === "" ? name : `${namespace}/${name}`}`;
}

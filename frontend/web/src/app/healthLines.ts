import { HEALTH, healthWords, leftOutWords } from "../i18n/en.ts";
import type { Health } from "../model/rows.ts";

export type HealthLine = { key: string; title: string; text: string };

/** The lines of the banner, the gravest first; none when all is well. */
export function healthLines(health: Health): HealthLine[] {
  const faults = health.faults.map(({ check, fault, since }) => ({
    key: check,
    title: HEALTH[check] ?? check,
    text: healthWords(check, fault, since),
  }));
  const hangs = health.processes
    .filter(({ heldObject }) => heldObject !== null)
    .map(({ name, heldObject }) => ({
      key: `held-${name}`,
      title: name,
      text: `hangs on ${heldObject}.`,
    }));
  const leftOut = health.setAside.map((object) => ({
    key: `${object.process}-${object.kind}-${object.namespace}-${object.name}`,
    title: leftOutWords(object),
    text: object.reason,
  }));
  return [...faults, ...hangs, ...leftOut];
}

/** Texts of the banner about faults of the kaiweb installation itself. */
import { reasonText } from "./reasons.ts";

const TITLES: Readonly<Record<string, string>> = {
  database: "Changes cannot be saved",
  migrations: "The database is not prepared",
  broker: "Scheduling is interrupted",
  cluster: "The cluster or its configuration is missing",
  processes: "A part of kaiweb does not work",
  cycles: "Nothing is being scheduled",
  mirror: "The data shown may be out of date",
  readiness: "The state of kaiweb is unknown",
};

const REMEDIES: Readonly<Record<string, string>> = {
  database: "Check for a full disk, or for a database that cannot be reached.",
  broker: "Check the broker (Redis).",
  cluster: "Check the API server and the Config object kai-config.",
  processes: "It is restarted automatically. If the fault returns, check its log.",
  cycles: "The scheduler is restarted automatically. If the fault stays, check its log.",
  mirror: "The mirror is restarted automatically. If the fault stays, check its log.",
};

export const HEALTH = {
  title: (check: string) => TITLES[check] ?? reasonText(check),
  fault: (check: string, fault: string, since: string) =>
    [`Since ${since}: ${fault}.`, REMEDIES[check]].filter(Boolean).join(" "),
  hangs: (object: string | null) => `hangs on ${object}.`,
  setAside: (process: string, object: string) =>
    `${process} leaves out ${object} until it changes. Edit or delete it:`,
} as const;

/** Change sets, their drafts, and the audit log. */
import type { DraftEdit } from "../model/draft.ts";
import type {
  AuditEntry,
  Change,
  ChangeSummary,
  PageOf,
  Policy,
  Simulation,
} from "../model/rows.ts";
import { call } from "./client.ts";
import { awaitSimulation } from "./simulate.ts";

export type ChangeContent = {
  readonly title?: string;
  readonly reason?: string;
  readonly policy?: Policy;
  readonly edits?: readonly DraftEdit[];
};
/** What can be done with a change set besides editing and applying it. */
export type ChangeAction = "request" | "approve" | "reject" | "revert";
export type AuditFilter = {
  readonly queue: string;
  readonly actor: string;
  readonly kind: string;
  readonly state: string;
  readonly since: string;
  readonly until: string;
};

const ROWS_PER_PAGE = 100;
const PREVIEW_TIMEOUT_MS = 60_000;

export function listChanges(cursor: string, signal: AbortSignal): Promise<PageOf<ChangeSummary>> {
  return call("GET", `/changes?${query({ cursor })}`, { signal });
}

export function fetchChange(id: number, signal?: AbortSignal): Promise<Change> {
  return call("GET", `/changes/${id}`, signal ? { signal } : {});
}

export function createChange(content: ChangeContent): Promise<Change> {
  return call("POST", "/changes", { body: content });
}

export function patchChange(id: number, content: ChangeContent): Promise<Change> {
  return call("PATCH", `/changes/${id}`, { body: content });
}

export function deleteChange(id: number): Promise<void> {
  return call("DELETE", `/changes/${id}`);
}

export function actOnChange(id: number, action: ChangeAction): Promise<Change> {
  return call("POST", `/changes/${id}:${action}`);
}

/** Simulate a change set; return it with the finished simulation, whose id is its `preview`. */
export async function previewChange(
  id: number,
): Promise<{ change: Change; simulation: Simulation }> {
  const signal = AbortSignal.timeout(PREVIEW_TIMEOUT_MS);
  const change = await call<Change>("POST", `/changes/${id}:preview`, { signal });
  if (change.preview === null) throw new Error(`change set ${id}: expected a preview, got none`);
  return { change, simulation: await awaitSimulation(change.preview, signal) };
}

export function applyChange(
  id: number,
  body: { preview?: number; reason?: string },
): Promise<Change> {
  return call("POST", `/changes/${id}:apply`, { body });
}

export function listAudit(
  filter: AuditFilter,
  cursor: string,
  signal: AbortSignal,
): Promise<PageOf<AuditEntry>> {
  return call("GET", `/audit?${query({ ...filter, cursor })}`, { signal });
}

function query(parameters: Readonly<Record<string, string>>): string {
  const search = new URLSearchParams({ limit: String(ROWS_PER_PAGE) });
  for (const [name, value] of Object.entries(parameters)) if (value !== "") search.set(name, value);
  return search.toString();
}

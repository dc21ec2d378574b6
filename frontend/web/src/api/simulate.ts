/** What an edit would do: the scheduler's own cycles, run by the server on a copy of the cluster. */
import type { Question, Simulation, SimulationSummary } from "../model/rows.ts";
import { call } from "./client.ts";

const POLL_MS = 1_000;
/** The server answers within this time if it can, so that most previews take one request. */
const HOLD_S = 20;

/** Run a simulation and return it once it is finished; a failed one is returned too. */
export async function simulate(question: Question, signal: AbortSignal): Promise<Simulation> {
  const headers = { Prefer: `wait=${HOLD_S}` };
  const simulation = await call<Simulation>("POST", "/simulations", {
    body: question,
    headers,
    signal,
  });
  return isFinished(simulation) ? simulation : awaitSimulation(simulation.id, signal);
}

/** Return the newest simulations. */
export function listSimulations(
  signal: AbortSignal,
): Promise<{ readonly items: readonly SimulationSummary[] }> {
  return call("GET", "/simulations?limit=10", { signal });
}

/** Return a simulation once it is finished. */
export async function awaitSimulation(id: number, signal: AbortSignal): Promise<Simulation> {
  for (;;) {
    const simulation = await call<Simulation>("GET", `/simulations/${id}`, { signal });
    if (isFinished(simulation)) return simulation;
    await pause(POLL_MS, signal);
  }
}

function isFinished({ state }: Simulation): boolean {
  return state === "done" || state === "failed";
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = window.setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      window.clearTimeout(timer);
      reject(signal.reason as Error);
    });
  });
}

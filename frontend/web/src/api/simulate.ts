/** What an edit would do: the scheduler's own cycles, run by the server on a copy of the cluster. */
import type { Question, Simulation } from "../model/rows.ts";
import { call } from "./client.ts";

const POLL_MS = 1_000;
/** The server answers within this time if it can, so that most previews take one request. */
const HOLD_S = 20;

/** Run a simulation and return it once it is finished; a failed one is returned too. */
export async function simulate(question: Question, signal: AbortSignal): Promise<Simulation> {
  const headers = { Prefer: `wait=${HOLD_S}` };
  let simulation = await call<Simulation>("POST", "/simulations", {
    body: question,
    headers,
    signal,
  });
  while (simulation.state === "queued" || simulation.state === "running") {
    await pause(POLL_MS, signal);
    simulation = await call<Simulation>("GET", `/simulations/${simulation.id}`, { signal });
  }
  return simulation;
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

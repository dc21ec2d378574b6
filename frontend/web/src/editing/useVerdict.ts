import { useQuery } from "@tanstack/react-query";
import { ApiProblem, type FieldError } from "../api/problem.ts";
import { useDebounced } from "../ui/useDebounced.ts";

/** What the server says about a write before it is sent. */
export type Verdict = {
  readonly errors: readonly Message[];
  readonly warnings: readonly Message[];
};
type Message = Pick<FieldError, "pointer" | "message">;
type DryRun = (signal: AbortSignal) => Promise<{ warnings: readonly Message[] } | undefined>;

const NO_MESSAGES: Verdict = { warnings: [], errors: [] };

/**
 * Return the server's errors and warnings for a write, from a dry run once typing pauses; null before that.
 *
 * @param write the write as one text, by which the dry run is cached; another text leads to another dry run
 * @param isReady whether the form can be sent at all
 */
export function useVerdict(write: string, isReady: boolean, dryRun: DryRun): Verdict | null {
  const debounced = useDebounced(write, 300);
  const query = useQuery({
    queryKey: ["queue-dry-run", debounced],
    queryFn: async ({ signal }) => {
      try {
        return { warnings: (await dryRun(signal))?.warnings ?? [], errors: [] };
      } catch (error) {
        if (!(error instanceof ApiProblem)) throw error;
        // The server has a newer version. That is no error of these values, because saving merges the two.
        if (error.status === 412) return NO_MESSAGES;
        return { warnings: [], errors: error.body.errors ?? [generalError(error)] };
      }
    },
    enabled: isReady && debounced === write,
    staleTime: 5_000,
    retry: false,
  });
  return isReady && debounced === write ? (query.data ?? null) : null;
}

/** Return the first message about one field. */
export function messageAt(messages: readonly Message[] | undefined, pointer: string) {
  return messages?.find((message) => message.pointer === pointer)?.message;
}

function generalError(problem: ApiProblem): Message {
  return { pointer: "", message: problem.message };
}

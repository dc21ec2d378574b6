import type { ReactNode } from "react";
import { ApiProblem } from "../api/problem.ts";
import { Denied } from "./Denied.tsx";
import { QueryFailure } from "./QueryFailure.tsx";
import { Loading } from "./States.tsx";

type Props<T> = {
  query: {
    readonly data: T | undefined;
    readonly error: Error | null;
    readonly refetch?: () => unknown;
  };
  rows?: number;
  children: (data: T) => ReactNode;
};

/** The content of an answer of the API; until it arrives, placeholders, or why there is none. */
export function Answer<T>({ query, rows = 6, children }: Props<T>) {
  const { data, error, refetch } = query;
  if (data !== undefined) return children(data);
  if (error === null) return <Loading rows={rows} />;
  if (error instanceof ApiProblem && error.status === 403) return <Denied right={error.message} />;
  return <QueryFailure error={error} onRetry={() => void refetch?.()} />;
}

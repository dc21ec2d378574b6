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

/** Show the result of a query; until it arrives show placeholders, or why it failed. */
export function QueryResult<T>({ query, rows = 6, children }: Props<T>) {
  const { data, error, refetch } = query;
  if (data !== undefined) return children(data);
  if (error === null) return <Loading rows={rows} />;
  if (error instanceof ApiProblem && error.status === 403) return <Denied right={error.message} />;
  return <QueryFailure error={error} onRetry={() => void refetch?.()} />;
}

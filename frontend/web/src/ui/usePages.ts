import { type QueryKey, useInfiniteQuery } from "@tanstack/react-query";
import type { PageOf } from "../model/rows.ts";

/** Return the rows of a list that the server sends page by page, and how to load the next page. */
export function usePages<T>(
  queryKey: QueryKey,
  fetchPage: (cursor: string, signal: AbortSignal) => Promise<PageOf<T>>,
  everyMs: number | false,
  enabled = true,
) {
  const query = useInfiniteQuery({
    queryKey,
    queryFn: ({ pageParam, signal }) => fetchPage(pageParam, signal),
    initialPageParam: "",
    getNextPageParam: ({ next }: PageOf<T>) => next ?? undefined,
    refetchInterval: everyMs,
    enabled,
  });
  return {
    /** The rows of all pages so far; with the error and `refetch` this is what QueryResult takes. */
    data: query.data?.pages.flatMap(({ items }) => items),
    error: query.error,
    refetch: query.refetch,
    hasMore: query.hasNextPage,
    isLoadingMore: query.isFetchingNextPage,
    loadMore: () => void query.fetchNextPage(),
  };
}

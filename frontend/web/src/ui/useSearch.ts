import { useCallback } from "react";
import { useSearchParams } from "react-router";

/** Return the URL's parameters and a function that changes some of them (null removes one). */
export function useSearch(): [URLSearchParams, (change: Record<string, string | null>) => void] {
  const [search, setSearch] = useSearchParams();
  const change = useCallback(
    (changes: Record<string, string | null>) =>
      setSearch(
        (old) => {
          const next = new URLSearchParams(old);
          for (const [key, value] of Object.entries(changes)) {
            if (value === null || value === "") next.delete(key);
            else next.set(key, value);
          }
          return next;
        },
        { replace: true },
      ),
    [setSearch],
  );
  return [search, change];
}

import { useSearch } from "./useSearch.ts";

/** Return the choice that the address holds under a key, and a function that changes it; the default is not written there. */
export function useChoice<T extends string>(
  key: string,
  choices: readonly T[],
  fallback: T,
): [T, (next: string) => void] {
  const [search, changeSearch] = useSearch();
  const text = search.get(key);
  const choice = choices.find((each) => each === text) ?? fallback;
  return [choice, (next) => changeSearch({ [key]: next === fallback ? null : next })];
}

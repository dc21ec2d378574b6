import { useEffect, useRef, useState } from "react";
import { useQueuesHistory } from "../../../api/usage.ts";
import { useMe } from "../../../api/useMe.ts";
import { maySeeUse } from "../../../model/rights.ts";
import type { Series } from "../../../model/series.ts";
import type { NamedQueue } from "../../../model/tree.ts";
import { useDebounced } from "../../../ui/useDebounced.ts";

const SCROLLING_MS = 300;
const MOST_QUEUES = 200;

/** Return the allocated GPUs of the last hour for the rows in view, in one request after scrolling. */
export function useTrends(
  visible: readonly string[],
  queues: ReadonlyMap<string, NamedQueue>,
): ReadonlyMap<string, Series> {
  const me = useMe();
  const names = visible.filter((name) => maySeeUse(me, queues, name)).slice(0, MOST_QUEUES);
  const settled = useDebounced(names.toSorted().join(","), SCROLLING_MS);
  const { data } = useQueuesHistory(settled === "" ? [] : settled.split(","), "1h");
  const known = useRef(new Map<string, Series>());
  const [trends, setTrends] = useState<ReadonlyMap<string, Series>>(known.current);
  useEffect(() => {
    if (data === undefined) return;
    for (const { queue, allocated } of data.series) known.current.set(queue, allocated ?? []);
    setTrends(new Map(known.current));
  }, [data]);
  return trends;
}

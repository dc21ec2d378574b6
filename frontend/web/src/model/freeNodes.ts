/** How many whole GPUs are free on each node, summed up by model: where does a large workload fit? */
import type { Cluster } from "./rows.ts";

type ModelNodes = {
  readonly model: string;
  readonly nodes: number;
  /** Most free GPUs first. */
  readonly counts: readonly { readonly free: number; readonly nodes: number }[];
};

/** Return the counts of each model, in the order of the server. */
export function nodesByModel({ freeByNode }: Pick<Cluster, "freeByNode">): ModelNodes[] {
  const models = new Map<string, { free: number; nodes: number }[]>();
  for (const { model, free, nodes } of freeByNode) {
    const counts = models.get(model) ?? [];
    models.set(model, [...counts, { free, nodes }]);
  }
  return [...models].map(([model, counts]) => ({
    model,
    counts,
    nodes: counts.reduce((sum, each) => sum + each.nodes, 0),
  }));
}

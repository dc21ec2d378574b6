/** What the command palette finds: pages, queues, workloads, pods, users, nodes and GPUs. */
import type { Node, Queue, Workload } from "../../model/rows.ts";

export type Kind = "page" | "queue" | "workload" | "pod" | "user" | "node" | "gpu";
export type Hit = {
  readonly kind: Kind;
  readonly key: string;
  readonly label: string;
  /** What tells it apart from others of the same name; "" for nothing. */
  readonly detail: string;
  /** What it is found by as well, but is not shown. */
  readonly alias?: string;
  readonly to: string;
};
export type Sources = {
  readonly pages: readonly { readonly name: string; readonly to: string }[];
  readonly queues: Iterable<Queue>;
  readonly workloads: Iterable<Workload>;
  readonly nodes: Iterable<Node>;
};

const MAX_PER_KIND = 6;

/** Return the best matches of each kind. Every word of the text must occur; a name that starts with it comes first. */
export function search(text: string, sources: Sources): Hit[] {
  const words = text.trim().toLowerCase().split(/\s+/).filter(Boolean);
  const best = new Best(words);
  for (const { name, to } of sources.pages) {
    best.offer({ kind: "page", key: to, label: name, detail: "", to });
  }
  if (words.length === 0) return best.hits();
  for (const queue of sources.queues) best.offer(queueHit(queue));
  for (const workload of sources.workloads) {
    best.offer(workloadHit(workload));
    if (workload.user !== "") best.offer(userHit(workload.user));
  }
  for (const node of sources.nodes) {
    best.offer(nodeHit(node));
    for (const hit of deviceHits(node)) best.offer(hit);
  }
  return best.hits();
}

/** Collects matches by kind; of each kind only the best are kept. */
class Best {
  readonly #words: readonly string[];
  readonly #byKind = new Map<Kind, Map<string, { hit: Hit; rank: number }>>();

  constructor(words: readonly string[]) {
    this.#words = words;
  }

  offer(hit: Hit): void {
    const text = `${hit.label} ${hit.detail} ${hit.alias ?? ""}`.toLowerCase();
    if (!this.#words.every((word) => text.includes(word))) return;
    const hits = this.#byKind.get(hit.kind) ?? new Map();
    this.#byKind.set(hit.kind, hits);
    if (!hits.has(hit.key)) hits.set(hit.key, { hit, rank: rankOf(text, this.#words.join(" ")) });
  }

  hits(): Hit[] {
    return [...this.#byKind.values()].flatMap((hits) =>
      [...hits.values()]
        .sort((a, b) => a.rank - b.rank || a.hit.label.localeCompare(b.hit.label))
        .slice(0, MAX_PER_KIND)
        .map(({ hit }) => hit),
    );
  }
}

/** Return how well a text matches, 0 for best: it starts with the phrase, a word of it does, it has the phrase, or only its words. */
function rankOf(text: string, phrase: string): number {
  if (text.startsWith(phrase)) return 0;
  const at = text.indexOf(phrase);
  if (at < 0) return 3;
  return /[a-z0-9]/.test(text.charAt(at - 1)) ? 2 : 1;
}

function queueHit({ name, displayName }: Queue): Hit {
  const label = displayName || name;
  const to = `/queues?queue=${encodeURIComponent(name)}`;
  return { kind: "queue", key: name, label, detail: label === name ? "" : name, to };
}

function workloadHit({ namespace, name, owner, queue }: Workload): Hit {
  const key = `${namespace}/${name}`;
  return {
    kind: "workload",
    key,
    label: owner || name,
    detail: `${namespace} · ${queue}`,
    alias: name,
    to: `/workloads/${key}`,
  };
}

function userHit(user: string): Hit {
  return {
    kind: "user",
    key: user,
    label: user,
    detail: "",
    to: `/workloads?q=${encodeURIComponent(user)}`,
  };
}

function nodeHit({ name, model }: Node): Hit {
  return { kind: "node", key: name, label: name, detail: model, to: nodePath(name) };
}

function* deviceHits({ name, devices }: Node): Iterable<Hit> {
  for (const { index, holders } of devices) {
    const key = `${name}/${index}`;
    const pods = holders.map(({ pod }) => pod).join(", ");
    yield { kind: "gpu", key, label: `${name} GPU ${index}`, detail: pods, to: nodePath(name) };
    for (const { pod, workload, queue } of holders) {
      const to = workload === "" ? nodePath(name) : `/workloads/${workload}`;
      yield { kind: "pod", key: pod, label: pod, detail: `${name} ${queue}`, to };
    }
  }
}

function nodePath(name: string): string {
  return `/nodes?q=${encodeURIComponent(name)}`;
}

/**
 * A simulated cluster for working on the pages without a backend: a queue tree, nodes with GPUs,
 * and workloads that arrive, wait, run and end. It only has to look real; nothing is scheduled.
 */
import type { Device, Node, Queue, Session, Workload } from "../src/model/rows.ts";
import { explanationOf, podsOf } from "./explain.ts";
import type { LiveServer } from "./live-server.ts";
import { GIB, LEAVES, seedNodes, seedQueues } from "./world-seed.ts";
import { summary } from "./world-summary.ts";

const KINDS = ["Job", "PyTorchJob", "Deployment", "Pod", "StatefulSet"];
const WORDS = [
  "llama-ft",
  "resnet-sweep",
  "rl-walker",
  "tts-serve",
  "bert-eval",
  "ranker",
  "diffusion",
  "asr-train",
  "detector",
  "whisper",
];
const BLOCKS: [code: string, text: (queue: string, gpu: number) => string][] = [
  [
    "NoNodeFits",
    (_, gpu) =>
      `Resources were found for 1 pods while ${Math.max(2, gpu)} are required for gang scheduling. Additional pods cannot be scheduled due to: no nodes with enough resources were found: 22 node(s) didn't have enough resources: GPUs.`,
  ],
  [
    "OverLimit",
    (queue, gpu) =>
      `${queue} quota has reached the allowable limit of GPUs. Limit is 64 GPUs, currently 62 GPUs allocated and workload requested ${gpu} GPUs`,
  ],
  [
    "NonPreemptibleOverQuota",
    (queue, gpu) =>
      `Non-preemptible workload is over quota. Workload requested ${gpu} GPUs, but ${queue} quota is 8 GPUs, while 6 GPUs are already allocated for non-preemptible pods. Use a preemptible workload to go over quota.`,
  ],
  [
    "GroupIncomplete",
    () => "Job is not ready for scheduling. Waiting for 4 pods, currently 2 exist, 0 are gated",
  ],
];

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
type Fraction = { node: Mutable<Node>; index: number };

export class World {
  readonly #server: LiveServer;
  readonly queues = new Map<string, Mutable<Queue>>();
  readonly nodes = new Map<string, Mutable<Node>>();
  readonly workloads = new Map<string, Mutable<Workload>>();
  readonly #places = new Map<string, Fraction[]>();
  #random: () => number;
  #session = 1_840;
  #version = 5_000;
  #serial = 0;

  /** `scale` multiplies nodes and workloads, to try the pages with a large cluster. */
  constructor(server: LiveServer, scale = 1, seed = 7) {
    this.#server = server;
    this.#random = lehmer(seed);
    for (const [name, queue] of seedQueues(() => `"${++this.#version}"`))
      this.queues.set(name, queue);
    for (const [name, node] of seedNodes(scale)) this.nodes.set(name, node);
    for (let i = 0; i < 130 * scale; i++) this.#arrive(-this.#random() * 6 * 3_600_000);
    const past = Math.ceil(60 / scale);
    for (let i = 0; i < past; i++) this.#cycle(Date.now() - (past - i) * 1_900);
  }

  /** Simulate one scheduling session: workloads end, arrive and start, then all counts are updated. */
  step(): void {
    for (const [key, workload] of this.workloads) {
      if (workload.state === "running" && this.#random() < 0.035) this.#end(key, workload);
      else if (workload.state === "finished" && this.#random() < 0.2) this.#forget(key);
    }
    for (let i = 0; i < 3; i++) if (this.#random() < 0.75) this.#arrive(0);
    this.#cycle(Date.now());
  }

  patchQueue(name: string, change: Partial<Queue>): Queue {
    const queue = this.#queue(name);
    Object.assign(queue, change, { etag: `"${++this.#version}"` });
    this.#server.topic("queues").put({ k: name, ...queue });
    return queue;
  }

  #arrive(ago: number): void {
    const pick = <T>(list: readonly T[]): T => list[Math.floor(this.#random() * list.length)] as T;
    const queue = pick(["language", "vision", ...LEAVES]);
    const fraction = queue === "notebooks" || this.#random() < 0.12;
    const size = fraction
      ? 0.25 + 0.25 * Math.floor(this.#random() * 2)
      : pick([1, 1, 1, 2, 2, 4, 4, 8, 8, 16]);
    const pods = fraction ? 1 : size > 8 ? 2 : size > 2 && this.#random() < 0.4 ? size : 1;
    const owner = `${pick(WORDS)}-${++this.#serial}`;
    const namespace = queue === "default-queue" ? "default" : `team-${queue}`;
    const priorityClass =
      queue === "inference" ? "inference" : queue === "notebooks" ? "build" : "train";
    this.workloads.set(`${namespace}/pg-${owner}`, {
      namespace,
      name: `pg-${owner}`,
      kind: pick(KINDS),
      owner,
      queue,
      priorityClass,
      priority: { inference: 125, build: 100, train: 50 }[priorityClass] ?? 50,
      preemptible: priorityClass === "train",
      protectsMinimum: false,
      state: "pending",
      minMember: pods,
      ready: 0,
      pods,
      gpu: size,
      gpuKind: fraction ? "fraction" : "whole",
      gpuUtilisation: null,
      gpuIdle: null,
      idleSince: null,
      nodes: [],
      reason: "NotEvaluated",
      reasonText: "",
      createdAt: new Date(Date.now() + ago).toISOString(),
      startedAt: null,
      runDeadline: null,
      user: "",
      gated: 0,
      reasonSince: null,
      position: null,
      rv: "1",
      evictions: this.#random() < 0.1 ? 1 : 0,
    });
  }

  #cycle(now: number): void {
    let bound = 0;
    let refused = 0;
    const pending = [...this.workloads.entries()].filter(
      ([, workload]) => workload.state === "pending",
    );
    for (const [key, workload] of pending) {
      if (this.#random() < 0.35 && this.#place(key, workload)) bound += workload.pods;
      else {
        refused += 1;
        if (workload.reason === "NotEvaluated") {
          const [code, text] = BLOCKS[
            Math.floor(this.#random() * this.#random() * BLOCKS.length)
          ] as (typeof BLOCKS)[number];
          workload.reason = code;
          workload.reasonText = text(workload.queue, workload.gpu);
        }
      }
    }
    this.#publish();
    const load = 3 + this.#random() * 5 + bound * 0.6;
    this.#session += 1;
    this.#server.session = this.#session;
    const session: Session = {
      id: this.#session,
      shard: "default",
      startedAt: new Date(now).toISOString(),
      durationMs: load * 1.6,
      actions: [
        { name: "allocate", ms: load },
        { name: "consolidation", ms: load * 0.1 },
        { name: "reclaim", ms: load * 0.3 * this.#random() },
        { name: "preempt", ms: 0.4 },
      ],
      nodes: this.nodes.size,
      queues: this.queues.size,
      pendingBefore: pending.length,
      bound,
      evicted: this.#random() < 0.06 ? 2 : 0,
      nominated: 0,
      unschedulable: refused,
      decided: bound,
      number: this.#session,
      snapshotMs: load * 0.4,
      commitMs: load * 0.2,
      podGroups: this.workloads.size,
      pods: this.workloads.size * 2,
      error: "",
    };
    this.#server.topic("sessions").put({ k: String(session.id), ...session });
    this.#server.topic("sessions").remove(String(session.id - 200));
  }

  #place(key: string, workload: Mutable<Workload>): boolean {
    const places: Fraction[] = [];
    const each = workload.gpu / workload.pods;
    for (let pod = 0; pod < workload.pods; pod++) {
      const free = this.#findNode(each, places);
      if (free === null) return false;
      places.push(...free);
    }
    places.forEach(({ node, index }, order) => {
      const device = node.devices[index] as Device;
      const gpu = Math.min(1, each);
      const pod = `${workload.namespace}/${workload.owner}-${Math.floor(order / Math.max(1, each))}`;
      const holders = [...device.holders, { pod, workload: key, queue: workload.queue, gpu }];
      setDevice(node, index, {
        ...device,
        used: device.used + gpu,
        holders,
        state: each < 1 ? "shared" : "whole",
        group: each < 1 ? `group-${index}` : "",
      });
    });
    this.#places.set(key, places);
    workload.nodes = [...new Set(places.map(({ node }) => node.name))];
    Object.assign(workload, {
      state: "running",
      ready: workload.pods,
      reason: "",
      reasonText: "",
      startedAt: new Date().toISOString(),
    });
    return true;
  }

  #findNode(each: number, taken: readonly Fraction[]): Fraction[] | null {
    const nodes = [...this.nodes.values()].filter((node) => node.ready && !node.cordoned);
    nodes.sort((a, b) => b.gpuAllocated / b.gpuTotal - a.gpuAllocated / a.gpuTotal);
    for (const node of nodes) {
      const mine = taken.filter((place) => place.node === node).map(({ index }) => index);
      const fits = node.devices.filter(
        ({ index, used, state }) =>
          !mine.includes(index) &&
          (each < 1 ? used > 0 && state === "shared" && used + each <= 1 : used === 0),
      );
      const free = node.devices.filter(({ index, used }) => !mine.includes(index) && used === 0);
      if (each < 1) {
        const device = fits[0] ?? free[0];
        if (device !== undefined) return [{ node, index: device.index }];
      } else if (free.length >= each)
        return free.slice(0, each).map(({ index }) => ({ node, index }));
    }
    return null;
  }

  #end(key: string, workload: Mutable<Workload>): void {
    for (const { node, index } of this.#places.get(key) ?? []) {
      const device = node.devices[index] as Device;
      const holders = device.holders.filter((holder) => holder.workload !== key);
      const used = holders.reduce((sum, holder) => sum + holder.gpu, 0);
      setDevice(node, index, { ...device, holders, used, state: used === 0 ? "free" : "shared" });
    }
    this.#places.delete(key);
    Object.assign(workload, { state: "finished", ready: 0, nodes: [] });
  }

  #forget(key: string): void {
    this.workloads.delete(key);
    this.#server.topic("workloads").remove(key);
  }

  #publish(): void {
    for (const node of this.nodes.values()) {
      node.gpuAllocated = node.devices.reduce((sum, device) => sum + device.used, 0);
      const holders = node.devices.flatMap((device) => device.holders);
      node.pods = new Set(holders.map((holder) => holder.pod)).size + 3;
      node.cpu = { ...node.cpu, allocated: 900 + node.gpuAllocated * 9_000 };
      node.memory = { ...node.memory, allocated: 3 * GIB + node.gpuAllocated * 90 * GIB };
      this.#put("nodes", node.name, node);
    }
    for (const [key, workload] of this.workloads) {
      this.#put("workloads", key, workload);
      // The topic of one workload exists only after a client has subscribed to it.
      const topic = `workload:${key}`;
      if (this.#server.topics.has(topic)) {
        this.#put(topic, key, {
          ...workload,
          podList: podsOf(workload),
          explain: explanationOf(workload),
        });
      }
    }
    for (const queue of this.queues.values()) {
      const mine = [...this.workloads.values()].filter((workload) =>
        this.#isUnder(workload.queue, queue.name),
      );
      const running = mine.filter((workload) => workload.state === "running");
      const pending = mine.filter((workload) => workload.state === "pending");
      const vector = (list: Workload[]) => {
        const gpu = list.reduce((sum, workload) => sum + workload.gpu, 0);
        return { gpu, cpuMilli: Math.round(gpu * 9_000), memoryBytes: Math.round(gpu * 90e9) };
      };
      queue.allocated = vector(running);
      queue.allocatedNonPreemptible = vector(running.filter((workload) => !workload.preemptible));
      queue.requested = vector([...running, ...pending]);
      const quota = queue.quota.gpu === "unlimited" ? 999 : (queue.quota.gpu ?? 0);
      const gpu = Math.min(queue.requested.gpu, quota + 6 * (queue.weight.gpu ?? 0));
      queue.share = { gpu, cpuMilli: gpu * 12_000, memoryBytes: gpu * 100e9 };
      queue.pendingWorkloads = pending.length;
      queue.runningWorkloads = running.length;
      this.#put("queues", queue.name, queue);
    }
    this.#put(
      "cluster",
      "cluster",
      summary({
        queues: this.queues,
        nodes: this.nodes,
        workloads: this.workloads,
        session: this.#session,
      }),
    );
  }

  #put(topic: string, k: string, row: object): void {
    const log = this.#server.topic(topic);
    const text = JSON.stringify({ k, ...row });
    if (JSON.stringify(log.rows.get(k)) !== text) log.put(JSON.parse(text) as { k: string });
  }

  #queue(name: string): Mutable<Queue> {
    const queue = this.queues.get(name);
    if (queue === undefined) throw new Error(`no queue ${name}`);
    return queue;
  }

  #isUnder(name: string, ancestor: string): boolean {
    for (let at: string | null = name; at !== null; at = this.#queue(at).parent)
      if (at === ancestor) return true;
    return false;
  }
}

function setDevice(node: Mutable<Node>, index: number, device: Device): void {
  node.devices = node.devices.map((old) => (old.index === index ? device : old));
  node.gpuAllocated = node.devices.reduce((sum, { used }) => sum + used, 0);
}

function lehmer(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

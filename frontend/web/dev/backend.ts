/**
 * The backend of `npm run dev`: the one that KAIWEB_BACKEND names
 * (`KAIWEB_BACKEND=http://127.0.0.1:8000 npm run dev`), else a simulated cluster in this process.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Plugin, UserConfig } from "vite";
import { WebSocketServer } from "ws";
import type { Bound, Queue } from "../src/model/rows.ts";
import { LiveServer } from "./live-server.ts";
import { World } from "./world.ts";

export function backend(): Plugin {
  const real = process.env.KAIWEB_BACKEND;
  return {
    name: "kaiweb-backend",
    apply: "serve",
    config(): UserConfig {
      if (real === undefined) return {};
      // The backend checks the origin of writes and sockets, so this sends the backend's own.
      const to = { target: real, changeOrigin: true, ws: true, headers: { origin: real } };
      return {
        server: { proxy: { "/api": to, "/login": to, "/logout": to, "/static": to } },
      };
    },
    configureServer(vite) {
      if (real !== undefined || vite.httpServer === null) return;
      const live = new LiveServer();
      const world = new World(live, Number(process.env.KAIWEB_MOCK_SCALE ?? 1));
      const step = setInterval(() => world.step(), 1_500);
      const sockets = new WebSocketServer({
        noServer: true,
        handleProtocols: () => "kaiweb.live.v1",
      });
      vite.httpServer.on("upgrade", (request, socket, head) => {
        if (request.url?.startsWith("/api/v1/live") !== true) return;
        sockets.handleUpgrade(request, socket, head, (wire) => {
          const connection = live.connect((frame) => wire.send(JSON.stringify(frame)));
          const flush = setInterval(() => connection.flush(), 250);
          wire.on("message", (data) => connection.receive(String(data)));
          wire.on("close", () => clearInterval(flush));
        });
      });
      vite.httpServer.on("close", () => clearInterval(step));
      vite.middlewares.use("/api/v1", (request, response, next) => {
        answer(world, request, response).catch(next);
      });
    },
  };
}

async function answer(
  world: World,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const url = new URL(request.url ?? "/", "http://mock");
  const [, resource = "", first = ""] = url.pathname.split("/").map(decodeURIComponent);
  const send = (status: number, body: unknown) => {
    response.statusCode = status;
    response.setHeader(
      "Content-Type",
      status < 400 ? "application/json" : "application/problem+json",
    );
    response.end(JSON.stringify(body));
  };
  if (resource === "me") {
    send(200, {
      username: "admin",
      displayName: "Admin",
      isAdmin: true,
      rights: { editQueues: true },
    });
  } else if (resource === "queues" && request.method === "PATCH") {
    const [status, body] = patch(
      world,
      first,
      await read(request),
      request.headers["if-match"],
      url,
    );
    send(status, body);
  } else {
    send(404, {
      type: "not-found",
      title: "Not found",
      status: 404,
      detail: `No ${url.pathname} here.`,
    });
  }
}

type Patch = { priority?: number | null; displayName?: string } & Record<
  "quota" | "limit" | "weight",
  Record<string, Bound | null> | undefined
>;

function patch(
  world: World,
  name: string,
  body: Patch,
  etag: string | undefined,
  url: URL,
): [number, unknown] {
  const queue = world.queues.get(name);
  if (queue === undefined)
    return [
      404,
      { type: "not-found", title: "Not found", status: 404, detail: `No queue ${name}.` },
    ];
  if (etag !== queue.etag) {
    return [
      412,
      {
        type: "precondition-failed",
        title: "The queue has changed",
        status: 412,
        detail: `expected ${etag}, is ${queue.etag}`,
        current: queue,
      },
    ];
  }
  const next: Record<string, unknown> = { ...queue };
  const errors: object[] = [];
  const warnings: object[] = [];
  for (const part of ["quota", "limit", "weight"] as const) {
    const merged: Record<string, Bound> = { ...queue[part] };
    for (const [resource, value] of Object.entries(body[part] ?? {})) {
      if (value === null) delete merged[resource];
      else merged[resource] = value;
      if (typeof value === "number" && value < 0) {
        errors.push({
          pointer: `/${part}/${resource}`,
          code: "negative",
          message: `${part} must not be negative`,
          given: value,
          allowed: ">= 0",
        });
      }
    }
    next[part] = merged;
  }
  if (body.priority !== undefined) next.priority = body.priority;
  const { quota, limit } = next as unknown as Queue;
  if (typeof quota.gpu === "number" && typeof limit.gpu === "number" && quota.gpu > limit.gpu) {
    warnings.push({
      pointer: "/quota/gpu",
      code: "quota-over-limit",
      message: `The quota of ${quota.gpu} GPUs is over the limit of ${limit.gpu}; the limit wins.`,
    });
  }
  if (errors.length > 0)
    return [
      422,
      {
        type: "validation",
        title: "Not valid",
        status: 422,
        detail: "One field is not valid.",
        errors,
      },
    ];
  const dryRun = url.searchParams.get("dryRun") === "true";
  const answer = dryRun
    ? next
    : world.patchQueue(name, {
        quota,
        limit,
        weight: (next as unknown as Queue).weight,
        priority: (next as unknown as Queue).priority,
      });
  return [200, { queue: answer, warnings, changed: true, dryRun }];
}

async function read(request: IncomingMessage): Promise<Patch> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return JSON.parse(Buffer.concat(chunks).toString() || "{}") as Patch;
}

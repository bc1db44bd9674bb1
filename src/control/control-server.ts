import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import {
  clean,
  ClusterAddressError,
  Refusal,
  ClusterConfigurationError,
} from '../contract/errors/errors.js';
import {
  checkWorkerCount,
  integer,
  MAX_PROFILE_SECONDS,
  validate,
} from '../contract/options/checks.js';
import type {
  ClusterSnapshot,
  Recording,
  RecordingKind,
  ReloadResult,
  RestartResult,
  WorkerStack,
} from '../contract/snapshot/types.js';
import type { ClusterStatus } from './cluster-status.js';

/** The state and actions of a cluster, for the routes. */
export interface ControlledCluster {
  /** Whether a reload is under way, for any reason. */
  readonly reloading: boolean;
  snapshot(): ClusterSnapshot;
  reload(reason: string): Promise<ReloadResult>;
  scale(workers: number, reason: string): Promise<ClusterSnapshot>;
  restart(slot: number, reason: string): Promise<RestartResult>;
  stop(reason: string): void;
  /** Inspects a worker, even if the worker is blocked. The methods throw a `Refusal`. */
  readonly inspections: {
    stack(slot: number): Promise<WorkerStack>;
    /** @returns the path of the file written by the worker. */
    record(slot: number, recording: Recording): Promise<{ readonly file: string }>;
  };
}

interface Call {
  /** The slot in the path; the cluster may not have it. `NaN` if the path has no slot. */
  readonly slot: number;
  readonly query: URLSearchParams;
  /** The request's body, parsed as JSON. `undefined` without a body. */
  readonly body: unknown;
}

/** Returns the answer, which is sent as JSON. */
type Handler = (call: Call) => Promise<object> | object;

const REASON = 'control socket';

const MAX_BODY_LENGTH = 64 * 1024;

/** Answers the requests to the control socket. Only the user that runs the cluster can connect. */
export class ControlServer {
  /** Answers the waiting `POST /v1/stop` requests. */
  end!: (exitCode: number) => void;
  readonly #ended = new Promise<number>((resolve) => (this.end = resolve));
  readonly #routes: ReadonlyMap<string, Handler>;
  // Importing node:http would call its getters, one of which loads a WebSocket client.
  readonly #http: Server = process
    .getBuiltinModule('node:http')
    .createServer((request, response) => void this.#onRequest(request, response));

  constructor(
    cluster: ControlledCluster,
    status: () => ClusterStatus,
    private readonly warn: (message: string) => void,
  ) {
    this.#routes = new Map(Object.entries(routesOf(cluster, status, this.#ended)));
  }

  take(socket: Socket): void {
    socket.on('error', () => {}); // the client is gone
    this.#http.emit('connection', socket);
  }

  async #onRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const [path = '', query] = request.url!.split('?');
      const [, slot, action] = /^\/v1\/workers\/(\d{1,4})(\/.*)$/.exec(path) ?? [];
      const pattern = slot === undefined ? path : `/v1/workers/:slot${action}`;
      const handler = this.#routes.get(`${request.method} ${pattern}`);
      if (handler === undefined) {
        const routes = [...this.#routes.keys()].join(', ');
        throw new Refusal(404, 'NOT_FOUND', `unknown route; the routes are ${routes}`);
      }
      const body = await bodyOf(request);
      const call = { slot: Number(slot), query: new URLSearchParams(query), body };
      send(response, 200, await handler(call));
    } catch (error) {
      if (request.errored) return; // the client has left
      const { status, code, message } = this.#refusalOf(error);
      send(response, status, { error: { code, message } });
    }
  }

  #refusalOf(error: unknown): Refusal {
    if (error instanceof Refusal) return error;
    if (error instanceof ClusterAddressError) {
      return new Refusal(409, error.code, clean(error.message));
    }
    if (error instanceof ClusterConfigurationError) {
      return new Refusal(400, 'BAD_REQUEST', error.message);
    }
    this.warn(`a request to the control socket failed: ${String(error)}`);
    return new Refusal(500, 'INTERNAL', "internal error; see the cluster's log");
  }
}

function routesOf(
  cluster: ControlledCluster,
  status: () => ClusterStatus,
  ended: Promise<number>,
): Readonly<Record<string, Handler>> {
  const { inspections } = cluster;
  const record = async (kind: RecordingKind, { slot, query }: Call) => {
    const { file } = await inspections.record(slot, { kind, seconds: secondsIn(query) });
    return { file };
  };
  return {
    'GET /v1/status': status,
    'POST /v1/reload': () => {
      // A running reload may have started with an older program, so its result does not answer this request.
      if (!cluster.reloading) return cluster.reload(REASON);
      throw new Refusal(409, 'BUSY', 'a reload is already in progress; try again when it ends');
    },
    'POST /v1/scale': async ({ body }) => {
      const { workers: wanted } = Object(body) as { readonly workers: number };
      checkWorkerCount(wanted);
      const { desired: from } = cluster.snapshot();
      // If new workers have failed, fewer are ready than desired.
      const { desired, ready } = await cluster.scale(wanted, REASON);
      return { from, workers: desired, ready };
    },
    // Answered once every worker has left.
    'POST /v1/stop': async () => {
      cluster.stop(REASON);
      return { exitCode: await ended };
    },
    'POST /v1/workers/:slot/restart': ({ slot }) => cluster.restart(slot, REASON),
    'GET /v1/workers/:slot/stack': ({ slot }) => inspections.stack(slot),
    'POST /v1/workers/:slot/cpu-profile': (call) => record('cpu-profile', call),
    'POST /v1/workers/:slot/heap-profile': (call) => record('heap-profile', call),
  };
}

const DEFAULT_SECONDS = 10;

/** @throws ClusterConfigurationError */
function secondsIn(query: URLSearchParams): number {
  const seconds = Number(query.get('seconds') ?? DEFAULT_SECONDS);
  return validate(integer(1, MAX_PROFILE_SECONDS), seconds, 'seconds');
}

/** @throws Refusal if the body is too long or not JSON, another error if the client disconnects. */
async function bodyOf(request: IncomingMessage): Promise<unknown> {
  let body = '';
  for await (const part of request.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    body += part as string;
    if (body.length > MAX_BODY_LENGTH)
      throw new Refusal(413, 'BAD_REQUEST', 'the request body is too long');
  }
  try {
    return body === '' ? undefined : JSON.parse(body);
  } catch {
    throw new Refusal(400, 'BAD_REQUEST', 'the request body is not JSON');
  }
}

function send(response: ServerResponse, status: number, answer: object): void {
  const body = `${JSON.stringify(answer)}\n`;
  response.writeHead(status, {
    Connection: 'close',
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
  });
  response.end(body);
}

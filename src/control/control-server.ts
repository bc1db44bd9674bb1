import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream';
import { guardCall, readBody } from './guard-call.js';
import { type Answer, findRoute, Refusal, type Routes } from './route.js';
import { TokenBucket } from './token-bucket.js';

/** From the connection to the end of its request. */
const REQUEST_MS = 5_000;

/** A client that reads nothing for so long is dropped. */
const STALLED_MS = 10_000;

const MAX_HEADER_BYTES = 8 * 1024;

/** One request each. What a person or a dashboard asks is far below. */
const CONNECTIONS_A_SECOND = 50;
const CONNECTIONS_AT_ONCE = 100;

const TOO_MANY = rawAnswer(429, 'Too Many Requests', 'RATE', 'too many requests; ask again later');

/**
 * Answers the requests of the control socket, one for each connection. It runs
 * on the event loop that supervises: whatever a client does must be little work.
 */
export class ControlServer {
  // Node's module has getters that load a WebSocket client, which an import would call.
  readonly #http: Server = process
    .getBuiltinModule('node:http')
    .createServer({ maxHeaderSize: MAX_HEADER_BYTES }, (request, response) =>
      this.#onRequest(request, response),
    );
  readonly #deadlines = new WeakMap<Socket, NodeJS.Timeout>();

  constructor(
    private readonly routes: Routes,
    private readonly warn: (message: string) => void,
    private readonly requestMs = REQUEST_MS,
    private readonly bucket = new TokenBucket(CONNECTIONS_A_SECOND, CONNECTIONS_AT_ONCE),
  ) {
    this.#http.maxRequestsPerSocket = 1;
  }

  /** @param socket paused, of a client that has connected. */
  take(socket: Socket): void {
    socket.on('error', () => {}); // it is gone
    if (!this.bucket.take()) return void socket.end(TOO_MANY, () => socket.destroy());
    this.#deadlines.set(
      socket,
      setTimeout(() => socket.destroy(), this.requestMs),
    );
    socket.once('close', () => clearTimeout(this.#deadlines.get(socket)));
    this.#http.emit('connection', socket);
    socket.resume();
  }

  #onRequest(request: IncomingMessage, response: ServerResponse): void {
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    this.#answer(request, gone.signal).then(
      (answer) => send(response, answer),
      (error: unknown) => send(response, this.#refusalOf(error)),
    );
  }

  async #answer(request: IncomingMessage, gone: AbortSignal): Promise<Answer> {
    guardCall(request);
    const { pathname, searchParams: query } = urlOf(request);
    const { handler, slot } = findRoute(this.routes, request.method!, pathname);
    const body = await readBody(request);
    clearTimeout(this.#deadlines.get(request.socket));
    return handler({ slot, query, body, gone });
  }

  #refusalOf(error: unknown): Answer {
    if (error instanceof Refusal) return refused(error);
    this.warn(`the control socket has no answer: ${String(error)}`);
    return refused(
      new Refusal(500, 'INTERNAL', 'internal error; the log of the cluster says more'),
    );
  }
}

function send(response: ServerResponse, answer: Answer): void {
  const { socket } = response;
  if (socket === null || socket.destroyed) {
    if ('stream' in answer) answer.stream.destroy();
    return;
  }
  const headers = {
    Connection: 'close',
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
  };
  socket.setTimeout(STALLED_MS, () => socket.destroy());
  if ('json' in answer) {
    const body = `${JSON.stringify(answer.json)}\n`;
    response.writeHead(answer.status, {
      ...headers,
      'Content-Type': 'application/json; charset=utf-8',
      'Content-Length': Buffer.byteLength(body),
    });
    // A client that sends on, and does not close, would keep its place.
    return void response.end(body, () => socket.destroySoon());
  }
  response.writeHead(answer.status, { ...headers, 'Content-Type': answer.contentType });
  response.flushHeaders();
  pipeline(answer.stream, response, () => socket.destroySoon());
}

function refused({ status, code, message }: Refusal): Answer {
  return { status, json: { error: { code, message } } };
}

/** @throws Refusal */
function urlOf({ url = '' }: IncomingMessage): URL {
  if (url.startsWith('/') && URL.canParse(url, 'http://localhost')) {
    return new URL(url, 'http://localhost');
  }
  throw new Refusal(400, 'BAD_REQUEST', 'the target is no path');
}

function rawAnswer(status: number, phrase: string, code: string, message: string): string {
  const body = `${JSON.stringify({ error: { code, message } })}\n`;
  return [
    `HTTP/1.1 ${status} ${phrase}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${body.length}`,
    'Connection: close',
    '',
    body,
  ].join('\r\n');
}

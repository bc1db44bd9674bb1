import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream';
import { guardCall, readBody } from './guard-call.js';
import { type Answer, findRoute, Refusal, type Routes, tooMany } from './route.js';
import { TokenBucket } from './token-bucket.js';

/** Maximum time until a new connection has sent its request. After that the connection is closed. */
const REQUEST_MS = 5_000;

/** The connection of a client that reads nothing for this long is closed. */
const STALLED_MS = 10_000;

const MAX_HEADER_BYTES = 8 * 1024;

/** Maximum rate of requests; further requests are answered 429. A person or a dashboard sends far fewer. */
const REQUESTS_A_SECOND = 50;
const REQUESTS_AFTER_A_PAUSE = 100;

/** Maximum of connections without a request. A further connection causes the oldest to be closed. */
const MAX_SILENT = 32;

/** Maximum of requests at once; further requests are answered 429, except 32 more `POST /v1/stop`. */
const MAX_ANSWERED = 32;
const MAX_WITH_STOPS = 2 * MAX_ANSWERED;

const RETRY_AFTER_SECONDS = 1;

const GAVE_PLACE = rawTooMany('other connections needed the place of one that sent no request');

/**
 * Answers the requests of the control socket, one per connection. It runs on the event loop of the
 * supervisor, so every request must be little work.
 */
export class ControlServer {
  // An import of node:http would call its getters, and one of them loads a WebSocket client.
  readonly #http: Server = process
    .getBuiltinModule('node:http')
    .createServer({ maxHeaderSize: MAX_HEADER_BYTES }, (request, response) =>
      this.#onRequest(request, response),
    );
  readonly #deadlines = new WeakMap<Socket, NodeJS.Timeout>();
  /** Connections without a request yet, the oldest first. */
  readonly #silent = new Set<Socket>();
  #answered = 0;

  constructor(
    private readonly routes: Routes,
    private readonly warn: (message: string) => void,
    private readonly requestMs = REQUEST_MS,
    private readonly bucket = new TokenBucket(REQUESTS_A_SECOND, REQUESTS_AFTER_A_PAUSE),
  ) {
    this.#http.maxRequestsPerSocket = 1;
    this.#http.on('checkContinue', (request, response) => this.#onRequest(request, response));
  }

  /** @param socket the paused connection of a client. */
  take(socket: Socket): void {
    socket.on('error', () => {}); // the client is gone
    const [oldest] = this.#silent;
    if (this.#silent.size >= MAX_SILENT) {
      this.#silent.delete(oldest!);
      oldest!.end(GAVE_PLACE, () => oldest!.destroy());
    }
    this.#silent.add(socket);
    this.#deadlines.set(
      socket,
      setTimeout(() => socket.destroy(), this.requestMs),
    );
    socket.once('close', () => {
      clearTimeout(this.#deadlines.get(socket));
      this.#silent.delete(socket);
    });
    this.#http.emit('connection', socket);
    socket.resume();
  }

  #onRequest(request: IncomingMessage, response: ServerResponse): void {
    if (!this.#silent.delete(request.socket)) return; // its place was given to another connection
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    this.#answer(request, response, gone.signal).then(
      (answer) => send(response, answer),
      (error: unknown) => send(response, this.#refusalOf(error)),
    );
  }

  async #answer(
    request: IncomingMessage,
    response: ServerResponse,
    gone: AbortSignal,
  ): Promise<Answer> {
    this.#admit(request);
    guardCall(request);
    const { pathname, searchParams: query } = urlOf(request);
    const { handler, slot } = findRoute(this.routes, request.method!, pathname);
    if (request.headers.expect !== undefined) response.writeContinue();
    const body = await readBody(request);
    clearTimeout(this.#deadlines.get(request.socket));
    return handler({ slot, query, body, gone });
  }

  /**
   * Checks only the head of a request. `POST /v1/stop` has a higher limit, so that other requests
   * cannot keep it out.
   *
   * @throws Refusal
   */
  #admit({ method, url, socket }: IncomingMessage): void {
    const isStop = method === 'POST' && url === '/v1/stop';
    if (this.#answered >= (isStop ? MAX_WITH_STOPS : MAX_ANSWERED)) {
      throw tooMany(`${this.#answered} requests are being answered already`);
    }
    if (!isStop && !this.bucket.take()) throw tooMany('too many requests came in a second');
    this.#answered += 1;
    socket.once('close', () => (this.#answered -= 1));
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
      ...(answer.status === 429 && { 'Retry-After': RETRY_AFTER_SECONDS }),
    });
    // Destroys the socket: otherwise a client that goes on sending would keep its connection.
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
  throw new Refusal(400, 'BAD_REQUEST', 'the target is not a path');
}

/** The answer to a connection that has sent no request, as text. */
function rawTooMany(what: string): string {
  const { code, message } = tooMany(what);
  const body = `${JSON.stringify({ error: { code, message } })}\n`;
  return [
    'HTTP/1.1 429 Too Many Requests',
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${body.length}`,
    `Retry-After: ${RETRY_AFTER_SECONDS}`,
    'Connection: close',
    '',
    body,
  ].join('\r\n');
}

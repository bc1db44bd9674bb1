import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { findRoute, readBody, Refusal, type Routes } from './route.js';

/** Answers the requests of the control socket. Its only client is the user that runs the cluster. */
export class ControlServer {
  // An import of node:http would call its getters, and one of them loads a WebSocket client.
  readonly #http: Server = process
    .getBuiltinModule('node:http')
    .createServer((request, response) => void this.#onRequest(request, response));

  constructor(
    private readonly routes: Routes,
    private readonly warn: (message: string) => void,
  ) {}

  take(socket: Socket): void {
    socket.on('error', () => {}); // the client is gone
    this.#http.emit('connection', socket);
  }

  async #onRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const { pathname, searchParams: query } = urlOf(request);
      const { handler, slot } = findRoute(this.routes, request.method!, pathname);
      const body = await readBody(request);
      if (request.method === 'POST' && (await hasLeft(request))) return;
      send(response, 200, await handler({ slot, query, body }));
    } catch (error) {
      const { status, code, message } = this.#refusalOf(error);
      send(response, status, { error: { code, message } });
    }
  }

  #refusalOf(error: unknown): Refusal {
    if (error instanceof Refusal) return error;
    this.warn(`the control socket has no answer: ${String(error)}`);
    return new Refusal(500, 'INTERNAL', 'internal error; the log of the cluster says more');
  }
}

/**
 * Whether the client has left. It may have sent the request and left while this process was stopped.
 * The end of its connection is read right after the request.
 */
async function hasLeft({ socket }: IncomingMessage): Promise<boolean> {
  await nextTurn();
  return !socket.readable;
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

/** @throws Refusal */
function urlOf({ url = '' }: IncomingMessage): URL {
  if (url.startsWith('/') && URL.canParse(url, 'http://localhost')) {
    return new URL(url, 'http://localhost');
  }
  throw new Refusal(400, 'BAD_REQUEST', 'the target is not a path');
}

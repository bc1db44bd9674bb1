import {
  Agent,
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request as httpRequest,
  ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';
import { type Duplex, pipeline } from 'node:stream';

/** Header that asks the owner of a session to answer its waiting poll. It is harmless if a client sends it. */
export const RELEASE = 'x-nestjs-cluster-release';

/** Maximum number of open requests to one owner, because each uses a descriptor in both workers. Further requests wait. */
const MAX_REQUESTS = 1_000;

/** Idle connections to one owner, and how long they are kept, in ms. */
const IDLE = { maxFreeSockets: 8, timeout: 5_000 };

/** Hop-by-hop headers, which must not be relayed. */
const OF_CONNECTION =
  /^(connection|expect|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade)$/;

/** Relays requests to the workers that own their sessions, over the owners' unix sockets. */
export class Relay {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: MAX_REQUESTS, ...IDLE });
  readonly #open = new Set<() => void>();

  /** Functions that end the relayed polls and WebSockets without losing data. */
  get open(): Iterable<() => void> {
    return this.#open;
  }

  /** @param gone called if the owner disconnects before it has answered. */
  request(
    socketPath: string,
    request: IncomingMessage,
    response: ServerResponse,
    gone: () => void,
  ): void {
    const { method, url = '' } = request;
    const relayed = this.#relay(socketPath, request, response, {}, gone);
    if (relayed === undefined) return;
    if (method === 'GET') {
      const release = (): void => releasePoll(socketPath, url);
      this.#open.add(release);
      response.once('close', () => this.#open.delete(release));
    }
    // For other methods, Node would send the body without its length, and the owner would parse the
    // body as another request.
    if (method === 'POST') request.pipe(relayed);
    else relayed.end();
  }

  /** Relays a WebSocket until it closes. */
  upgrade(
    socketPath: string,
    request: IncomingMessage,
    client: Duplex,
    head: Buffer,
    gone: () => void,
  ): void {
    const response = new ServerResponse(request);
    response.assignSocket(client as Socket);
    response.once('finish', () => client.end()); // the owner has refused the upgrade
    client.on('error', () => client.destroy());
    const headers = { connection: 'Upgrade', upgrade: request.headers.upgrade };
    const relayed = this.#relay(socketPath, request, response, headers, () => {
      response.detachSocket(client as Socket);
      gone();
    });
    relayed?.on('upgrade', (answer, owner, first) => {
      response.writeHead(answer.statusCode!, answer.headers).flushHeaders();
      response.detachSocket(client as Socket);
      owner.write(head);
      client.write(first);
      this.#join(client, owner);
    });
    relayed?.end();
  }

  #join(client: Duplex, owner: Duplex): void {
    const leave = (): void => void owner.end();
    this.#open.add(leave);
    client.on('close', () => {
      this.#open.delete(leave);
      owner.destroy();
    });
    owner.on('error', () => client.destroy());
    // Node detects a closed client connection only while reading the client's data.
    owner.on('close', () => client.end().resume());
    client.pipe(owner);
    owner.pipe(client);
  }

  /** @returns `undefined` if `gone` was called. */
  #relay(
    socketPath: string,
    { method, url: path, headers: given }: IncomingMessage,
    response: ServerResponse,
    more: OutgoingHttpHeaders,
    gone: () => void,
  ): ClientRequest | undefined {
    const { 'content-length': _, ...others } = relayedHeaders(given);
    const headers = { ...others, ...more };
    let relayed: ClientRequest;
    try {
      relayed = httpRequest({ socketPath, path, method, headers, agent: this.#agent });
    } catch {
      gone(); // Node accepts some request paths that it refuses to send
      return undefined;
    }
    relayed.on('response', (answer) => {
      response.writeHead(answer.statusCode!, relayedHeaders(answer.headers));
      pipeline(answer, response, () => {});
    });
    relayed.on('error', () => {
      if (!response.headersSent && !response.destroyed) gone();
      else response.destroy();
    });
    response.once('close', () => relayed.destroy());
    return relayed;
  }
}

/** Uses its own connection, because waiting polls may occupy all others. */
function releasePoll(socketPath: string, path: string): void {
  httpRequest({ socketPath, path, headers: { [RELEASE]: '1' }, agent: false })
    .on('response', (answer) => answer.resume())
    .on('error', () => {}) // the owner has exited, so the poll has ended
    .end();
}

function relayedHeaders(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !OF_CONNECTION.test(name)));
}

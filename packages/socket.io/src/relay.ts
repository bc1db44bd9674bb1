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

/** Asks the owner of a session to answer its waiting poll. A client gains nothing by this header. */
export const RELEASE = 'x-nestjs-cluster-release';

/** Maximum number of open requests to one owner. Each takes a descriptor in both workers. Further ones wait. */
const MAX_REQUESTS = 1_000;

/** Idle connections to one owner, and how long they are kept, in ms. */
const IDLE = { maxFreeSockets: 8, timeout: 5_000 };

/** Headers that describe one connection only. */
const OF_CONNECTION =
  /^(connection|expect|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade)$/;

/** Relays requests to the workers that own their sessions, each by the owner's unix socket. */
export class Relay {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: MAX_REQUESTS, ...IDLE });
  readonly #open = new Set<() => void>();

  /** One function for each waiting poll and each WebSocket, which ends it without loss. */
  get open(): Iterable<() => void> {
    return this.#open;
  }

  /** @param gone called if the owner is gone before the client got an answer. */
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
    // Node would send the body of other methods without its length, so the owner would read it as
    // another request.
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
    // Node notices that the client has ended the connection only while the client's data is read.
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
      gone(); // Node receives some paths that it refuses to send
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

/** On a connection of its own, because all others may be taken by waiting polls. */
function releasePoll(socketPath: string, path: string): void {
  httpRequest({ socketPath, path, headers: { [RELEASE]: '1' }, agent: false })
    .on('response', (answer) => answer.resume())
    .on('error', () => {}) // the owner is gone, and the poll with it
    .end();
}

function relayedHeaders(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !OF_CONNECTION.test(name)));
}

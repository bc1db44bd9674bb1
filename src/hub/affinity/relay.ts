import {
  Agent,
  type ClientRequest,
  type IncomingMessage,
  request as httpRequest,
  type ServerResponse,
} from 'node:http';
import { createConnection } from 'node:net';
import { type Duplex, pipeline } from 'node:stream';
import { RELEASE } from './owner-door.js';
import { hasBody, headOf, relayedHeaders, requestHeaders } from './request-head.js';

/** Relays requests to the workers that own their sessions, through the doors of these. */
export class Relay {
  readonly #agent = new Agent({ keepAlive: true });
  /** How to end what goes on, without loss. */
  readonly #open = new Set<() => void>();

  get open(): Iterable<() => void> {
    return this.#open;
  }

  /**
   * Only a POST may have a body: Node gives that of a GET no frame of its own, and the owner would
   * read it as a request of the next client. A connection that had a body is not used again.
   *
   * @param gone the owner is gone, and nothing has been answered.
   */
  request(
    path: string,
    request: IncomingMessage,
    response: ServerResponse,
    gone: () => void,
  ): void {
    const { method, url } = request;
    const isPost = method === 'POST';
    if (!isPost && hasBody(request)) return refuse(response);
    const options = { socketPath: path, path: url, agent: isPost ? false : this.#agent };
    let relayed: ClientRequest;
    try {
      relayed = httpRequest({ ...options, method, headers: requestHeaders(request.headers) });
    } catch {
      return refuse(response); // Node reads some paths and headers that it does not write
    }
    const release = (): void => {
      httpRequest({ ...options, method: 'GET', headers: { [RELEASE]: '1' } })
        .on('response', (answer) => answer.resume())
        .on('error', () => {})
        .end();
    };
    if (method === 'GET') this.#open.add(release);
    relayed.on('response', (answer) => {
      response.writeHead(answer.statusCode!, relayedHeaders(answer.headers));
      pipeline(answer, response, () => {});
    });
    relayed.on('error', () => {
      if (!response.headersSent && !response.destroyed) gone();
      else response.destroy();
    });
    response.once('close', () => {
      this.#open.delete(release);
      relayed.destroy();
    });
    if (isPost) request.pipe(relayed);
    else relayed.end();
  }

  /** For as long as the connection lasts. */
  upgrade(
    path: string,
    request: IncomingMessage,
    client: Duplex,
    head: Buffer,
    gone: () => void,
  ): void {
    const owner = createConnection({ path, allowHalfOpen: true });
    const leave = (): void => void owner.end();
    owner.once('error', gone);
    client.once('error', () => owner.destroy());
    owner.once('connect', () => {
      owner.off('error', gone);
      if (client.destroyed) return void owner.destroy();
      owner.on('error', () => client.destroy());
      owner.write(headOf(request));
      owner.write(head);
      this.#open.add(leave);
      client.on('close', () => {
        this.#open.delete(leave);
        owner.destroy();
      });
      // What its client still sends is read, else its end would not be seen.
      owner.on('close', () => client.end().resume());
      client.pipe(owner);
      owner.pipe(client);
    });
  }
}

/** In the words of Engine.IO. What the client still sends is not read. */
function refuse(response: ServerResponse): void {
  const headers = { 'Content-Type': 'application/json', Connection: 'close' };
  response.writeHead(400, headers).end('{"code":3,"message":"Bad request"}');
}

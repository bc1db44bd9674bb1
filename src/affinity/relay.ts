import {
  Agent,
  type IncomingMessage,
  request as httpRequest,
  type ServerResponse,
} from 'node:http';
import { createConnection } from 'node:net';
import { type Duplex, pipeline } from 'node:stream';
import { RELEASE } from './owner-door.js';
import { headOf, relayedHeaders } from './request-head.js';

/** Relays requests to the workers that own their sessions, through the doors of these. */
export class Relay {
  readonly #agent = new Agent({ keepAlive: true });
  /** How to end what goes on, without loss. */
  readonly #open = new Set<() => void>();

  get open(): Iterable<() => void> {
    return this.#open;
  }

  /** @param gone the owner is: nothing has been answered. */
  request(
    path: string,
    request: IncomingMessage,
    response: ServerResponse,
    gone: () => void,
  ): void {
    const { method, url } = request;
    const options = { socketPath: path, method, path: url, agent: this.#agent };
    const headers = relayedHeaders(request.headers);
    const release = (): void => {
      httpRequest({ ...options, method: 'GET', headers: { [RELEASE]: '1' } })
        .on('response', (answer) => answer.resume())
        .on('error', () => {})
        .end();
    };
    if (method === 'GET') this.#open.add(release);
    const relayed = httpRequest({ ...options, headers });
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
    request.pipe(relayed);
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

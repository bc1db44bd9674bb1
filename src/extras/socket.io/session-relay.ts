import {
  Agent,
  type IncomingHttpHeaders,
  request as httpRequest,
  type ServerResponse,
} from 'node:http';
import { createConnection } from 'node:net';
import { type Duplex, pipeline } from 'node:stream';
import type { EngineRequest } from './engine.interface.js';
import { RELEASE } from './session-owner.js';

/** Headers of one connection, and each of ours has its own. */
const OF_CONNECTION =
  /^(connection|expect|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade)$/;

/** Passes requests to the workers that own their sessions, over these workers' private sockets. */
export class SessionRelay {
  readonly #agent = new Agent({ keepAlive: true });
  /** How to end what goes on, without loss. */
  readonly #open = new Set<() => void>();

  get open(): Iterable<() => void> {
    return this.#open;
  }

  /** @param gone the owner is: nothing has been answered. */
  request(path: string, request: EngineRequest, response: ServerResponse, gone: () => void): void {
    const { method, url } = request;
    const options = { socketPath: path, method, path: url, agent: this.#agent };
    const headers = passedOn(request.headers);
    const release = (): void => {
      httpRequest({ ...options, method: 'GET', headers: { [RELEASE]: '1' } })
        .on('response', (answer) => answer.resume())
        .on('error', () => {})
        .end();
    };
    if (method === 'GET') this.#open.add(release);
    const relayed = httpRequest({ ...options, headers });
    relayed.on('response', (answer) => {
      response.writeHead(answer.statusCode!, passedOn(answer.headers));
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

  upgrade(
    path: string,
    request: EngineRequest,
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
      owner.write(headOf(request), 'latin1');
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

function passedOn(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const kept = Object.entries(headers).filter(
    ([name]) => !OF_CONNECTION.test(name) && name !== RELEASE,
  );
  return Object.fromEntries(kept);
}

/** As Node has parsed it, so that no value ends a line. */
function headOf({ method, url, rawHeaders }: EngineRequest): string {
  const lines = [`${method} ${url} HTTP/1.1`];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    if (rawHeaders[at]!.toLowerCase() === RELEASE) continue;
    lines.push(`${rawHeaders[at]}: ${rawHeaders[at + 1]}`);
  }
  return `${lines.join('\r\n')}\r\n\r\n`;
}

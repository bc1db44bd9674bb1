import { randomBytes } from 'node:crypto';
import { chmodSync, rmSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Extension } from 'nestjs-cluster/extension';
import type { Engine, EngineRequest } from './engine.interface.js';
import { RELEASE } from './relay.js';

/** Serves the sessions of this worker. */
export interface OwnSessions extends Pick<Engine, 'handleRequest' | 'handleUpgrade'> {
  /** Answers a session's waiting poll without losing data, because the worker that relays it is exiting. */
  release(request: EngineRequest): void;
}

/** The format of a session id. It begins with the owner: random digits for each worker, and the slot. */
const SESSION_ID = /^([\da-f]{8}\.\d{1,4})\.[\w-]{20}$/;

/** Above Node's default of 16 KiB, because the relaying worker has already checked the headers. */
const MAX_HEADER_BYTES = 64 * 1024;

const RETRY_MS = 1_000;

/** The unix sockets on which workers accept relayed requests for their sessions. */
export class SessionSockets {
  readonly #owner: string;
  /** The directory of all sockets; `undefined` until this worker listens. */
  #directory: string | undefined;

  /** @param find finds the hub's socket. The other sockets are in the same directory, which only this user can access. */
  constructor(
    private readonly cluster: Pick<Extension, 'identity' | 'warn'>,
    private readonly find: () => Promise<string>,
    private readonly own: OwnSessions,
  ) {
    this.#owner = `${randomBytes(4).toString('hex')}.${cluster.identity.slot}`;
  }

  /** The random part is as long as in Engine.IO's ids, because only the id authenticates the client. */
  newSessionId(): string {
    return `${this.#owner}.${randomBytes(15).toString('base64url')}`;
  }

  /**
   * @param sid text from the client.
   * @returns the path of another worker's socket; `undefined` if this worker serves the request.
   */
  pathOf(sid: unknown): string | undefined {
    const owner = typeof sid === 'string' ? SESSION_ID.exec(sid)?.[1] : undefined;
    if (owner === undefined || owner === this.#owner) return undefined;
    return this.#directory && join(this.#directory, `${owner}.sock`);
  }

  /** Resolves when other workers can reach the sessions of this worker. Retries until then. */
  async open(): Promise<void> {
    try {
      const directory = dirname(await this.find());
      await this.#listen(join(directory, `${this.#owner}.sock`));
      this.#directory = directory;
    } catch (error) {
      const { message } = error as Error;
      this.cluster.warn(`requests cannot be relayed to their worker: ${message}`);
      await delay(RETRY_MS, undefined, { ref: false });
      await this.open();
    }
  }

  async #listen(path: string): Promise<void> {
    const http = createHttpServer({ maxHeaderSize: MAX_HEADER_BYTES, keepAliveTimeout: 0 });
    http.on('request', (request, response) => {
      if (request.headers[RELEASE] === undefined) return this.own.handleRequest(request, response);
      this.own.release(request);
      response.end();
    });
    http.on('upgrade', this.own.handleUpgrade);
    // The HTTP server does not listen itself, so a drain does not close it or count its connections.
    const server = createServer((socket) => http.emit('connection', socket)).unref();
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      // `exclusive`, because otherwise node:cluster would listen in the primary.
      server.listen({ path, exclusive: true }, resolve);
    });
    server.on('error', () => {}); // without free descriptors, the server accepts connections later
    chmodSync(path, 0o600);
    process.once('exit', () => rmSync(path, { force: true }));
  }
}

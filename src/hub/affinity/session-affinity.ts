import type { EventEmitter } from 'node:events';
import { existsSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { TLSSocket } from 'node:tls';
import { removeSocket } from '../../contract/files/stale-sockets.js';
import type { ClusterLink, HubAddress, PassedHandle } from '../../contract/snapshot/index.js';
import { Relay } from './relay.js';
import { listenForRelays, type OwnSessions } from './relay-server.js';
import { headOf } from './request-head.js';
import { newOwner, newSessionId, ownerOf } from './session-id.js';

/** A server's open connections and their maximum, which this package also sets. Node compares them at each accept. */
type LimitedServer = EventEmitter & {
  readonly _connections?: number;
  readonly maxConnections?: number;
};

const RETRY_MS = 1_000;

/** How often to check that the socket's file exists, in ms: the OS may remove it, e.g. at the user's logout. */
const CHECK_MS = 1_000;

/**
 * Serves sessions that one worker has in memory, although their clients reach any worker. The id of
 * a session names its owner. Other workers relay requests to the owner, and pass upgraded
 * connections to it. Upgraded connections with TLS are relayed too: one process has their keys.
 */
export class SessionAffinity {
  readonly #owner: string;
  readonly #relay: Relay;
  /** Connections that other workers have passed to this worker, which does not pass them on. */
  readonly #taken = new WeakSet<Duplex>();
  #address: HubAddress | undefined;
  #warned: string | undefined;

  /**
   * @param find finds the hub. The sockets for relays are in the hub's directory.
   * @param server gets the connections that other workers pass.
   */
  constructor(
    private readonly link: Pick<ClusterLink, 'identity' | 'passage' | 'warn'>,
    private readonly find: () => Promise<HubAddress>,
    private readonly server: EventEmitter,
    private readonly own: OwnSessions,
  ) {
    this.#owner = newOwner(link.identity.slot);
    this.#relay = new Relay(link.passage?.limit);
  }

  /** One function for each relayed request, which ends that request without loss. */
  get relayed(): Iterable<() => void> {
    return this.#relay.open;
  }

  /** Resolves when other workers can reach the sessions of this worker. Retries until then. */
  async open(): Promise<void> {
    try {
      const address = await this.find();
      const path = pathOf(address, this.#owner);
      const server = await listenForRelays(path, this.own, this.link.passage?.limit);
      const remove = (): void => removeSocket(path);
      process.once('exit', remove);
      const check = setInterval(() => {
        if (existsSync(path)) return;
        clearInterval(check);
        process.off('exit', remove);
        server.close();
        void this.open();
      }, CHECK_MS).unref();
      await this.link.passage?.open(this.#owner, (handle, head) => this.#take(handle, head));
      this.#address = address;
    } catch (error) {
      const { message } = error as Error;
      if (message !== this.#warned) {
        this.link.warn(`requests cannot be passed on to the worker of their session: ${message}`);
      }
      this.#warned = message;
      await delay(RETRY_MS, undefined, { ref: false });
      await this.open();
    }
  }

  newSessionId(): string {
    return newSessionId(this.#owner);
  }

  /** @param sid text from the client. */
  request(sid: unknown, request: IncomingMessage, response: ServerResponse): void {
    const other = this.#otherOwner(sid);
    const here = (): void => this.own.request(request, response);
    if (other === undefined) here();
    else this.#relay.request(pathOf(this.#address!, other), request, response, here);
  }

  /** @param sid text from the client. */
  upgrade(sid: unknown, request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const other = this.#otherOwner(sid);
    const here = (): void => this.own.upgrade(request, socket, head);
    if (other === undefined || this.#taken.has(socket)) here();
    else if (!this.#pass(other, request, socket, head)) {
      this.#relay.upgrade(pathOf(this.#address!, other), request, socket, head, here);
    }
  }

  #otherOwner(sid: unknown): string | undefined {
    const owner = ownerOf(sid);
    return this.#address === undefined || owner === this.#owner ? undefined : owner;
  }

  /** @returns whether the connection was passed to another worker. */
  #pass(to: string, request: IncomingMessage, socket: Duplex, head: Buffer): boolean {
    const handle = handleOf(socket);
    if (handle === undefined) return false;
    const read = Buffer.concat([headOf(request), head]);
    const passed = this.link.passage?.pass(to, this.#owner, handle, read);
    if (passed === undefined) return false;
    handle.readStop();
    socket.on('error', () => {});
    // The other process has its own descriptor, so this closes only the descriptor of this process.
    void passed.then(() => socket.destroy());
    return true;
  }

  /** The server parses the head again, as for any other connection of this worker. */
  #take(handle: PassedHandle, head: Buffer): void {
    const { maxConnections, _connections: open = 0 } = this.server as LimitedServer;
    if (typeof maxConnections === 'number' && open >= maxConnections) {
      handle.close();
      return void this.server.emit('drop');
    }
    // Node's types do not contain the option `handle`.
    const options: object = { handle, readable: true, writable: true, allowHalfOpen: true };
    const socket = new Socket(options).setNoDelay();
    this.#taken.add(socket);
    socket.unshift(head);
    this.server.emit('connection', socket);
  }
}

/** @returns `undefined` if the connection cannot be passed: it uses TLS or has buffered data. */
function handleOf(socket: Duplex): (PassedHandle & { readStop(): void }) | undefined {
  if (!(socket instanceof Socket) || socket instanceof TLSSocket) return undefined;
  if (socket.readableLength > 0 || socket.writableLength > 0) return undefined;
  const handle = Reflect.get(socket, '_handle') as { readStop?: unknown } | null | undefined;
  return typeof handle?.readStop === 'function' ? (handle as never) : undefined;
}

/** A path in the hub's directory. Only this user can enter that directory. `owner` has a checked form. */
function pathOf({ path }: HubAddress, owner: string): string {
  return `${path.replace(/\.hub$/, '')}.${owner}.hub`;
}

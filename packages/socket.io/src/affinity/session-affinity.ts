import { existsSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { removeSocket } from '../../../../src/contract/files/stale-sockets.js';
import type { ClusterLink, HubAddress } from '../../../../src/contract/snapshot/index.js';
import { Relay } from './relay.js';
import { listenForRelays, type OwnSessions } from './relay-server.js';
import { newOwner, newSessionId, ownerOf } from './session-id.js';

const RETRY_MS = 1_000;

/** How often to check that the socket's file exists, in ms: the OS may remove it, e.g. at the user's logout. */
const CHECK_MS = 1_000;

/**
 * Serves sessions that one worker has in memory, although their clients reach any worker. The id of
 * a session names its owner. Other workers relay requests and upgraded connections to the owner.
 */
export class SessionAffinity {
  readonly #owner: string;
  readonly #relay: Relay;
  #address: HubAddress | undefined;
  #warned: string | undefined;

  /** @param find finds the hub. The sockets for relays are in the hub's directory. */
  constructor(
    private readonly link: Pick<ClusterLink, 'identity' | 'connectionLimit' | 'warn'>,
    private readonly find: () => Promise<HubAddress>,
    private readonly own: OwnSessions,
  ) {
    this.#owner = newOwner(link.identity.slot);
    this.#relay = new Relay(link.connectionLimit);
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
      const server = await listenForRelays(path, this.own, this.link.connectionLimit);
      const remove = (): void => removeSocket(path);
      process.once('exit', remove);
      const check = setInterval(() => {
        if (existsSync(path)) return;
        clearInterval(check);
        process.off('exit', remove);
        server.close();
        void this.open();
      }, CHECK_MS).unref();
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
    if (other === undefined) here();
    else this.#relay.upgrade(pathOf(this.#address!, other), request, socket, head, here);
  }

  #otherOwner(sid: unknown): string | undefined {
    const owner = ownerOf(sid);
    return this.#address === undefined || owner === this.#owner ? undefined : owner;
  }
}

/** A path in the hub's directory. Only this user can enter that directory. `owner` has a checked form. */
function pathOf({ path }: HubAddress, owner: string): string {
  return `${path.replace(/\.hub$/, '')}.${owner}.hub`;
}

import type { Session } from 'socket.io-adapter';
import type { Broadcast } from './session-store.js';

/** Maximum time to connect a client, in ms. If middlewares take longer, the client misses packets. */
const MAX_MS = 30_000;

/** A client that comes back and is not connected yet. */
export class RecoveringClient {
  /** Broadcasts that came after the hub was asked which packets the client has missed. */
  readonly packets: { readonly offset: string; readonly broadcast: Broadcast }[] = [];
  /** The recovered session. `upTo` is the offset of the last packet in the hub's answer. */
  session: (Session & { readonly upTo: string }) | undefined;

  /** The packets that a socket in these rooms has missed up to now. */
  packetsFor(rooms: ReadonlySet<string>): unknown[][] {
    const { missedPackets, upTo } = this.session!;
    const isFor = ({ opts }: Broadcast): boolean =>
      (opts.rooms.length === 0 || opts.rooms.some((room) => rooms.has(room))) &&
      !opts.except.some((room) => rooms.has(room));
    const since = this.packets
      .filter(({ offset, broadcast }) => numberOf(offset) > numberOf(upTo) && isFor(broadcast))
      .map(({ broadcast }) => broadcast.packet.data);
    return [...missedPackets, ...since];
  }
}

/**
 * Collects broadcasts for clients that come back. Until their sockets are connected, Socket.IO
 * sends nothing to these clients, and middlewares may delay that moment.
 */
export class RecoveringClients {
  readonly #all = new Set<RecoveringClient>();

  note(offset: string, broadcast: Broadcast): void {
    for (const { packets } of this.#all) packets.push({ offset, broadcast });
  }

  begin(): RecoveringClient {
    const client = new RecoveringClient();
    this.#all.add(client);
    setTimeout(() => this.#all.delete(client), MAX_MS).unref();
    return client;
  }

  end(client: RecoveringClient): void {
    this.#all.delete(client);
  }

  /** @returns the client with this socket. Its broadcasts are no longer collected. */
  take(sid: string): RecoveringClient | undefined {
    for (const client of this.#all) {
      if (client.session?.sid !== sid) continue;
      this.end(client);
      return client;
    }
    return undefined;
  }
}

const numberOf = (offset: string): number => Number(offset.split('.')[1]);

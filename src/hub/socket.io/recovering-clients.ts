import type { Session } from 'socket.io-adapter';
import type { Broadcast } from './session-store.js';

/** With a slower middleware the client misses packets. */
const MAX_MS = 30_000;

/** A client that comes back, and is not connected yet. */
export class RecoveringClient {
  /** Broadcasts since the hub was asked what the client missed. */
  readonly packets: { readonly offset: string; readonly broadcast: Broadcast }[] = [];
  /** `upTo` is the offset of the last packet in the hub's answer. */
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
 * Collects broadcasts for clients between the hub's answer and the moment at which their socket counts
 * as connected: until then, which middlewares may delay, Socket.IO sends them nothing.
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

  /** @returns the client with this socket, which counts as connected from now on. */
  take(sid: string): RecoveringClient | undefined {
    for (const client of this.#all) {
      if (client.session?.sid !== sid) continue;
      this.end(client);
      return client;
    }
    return undefined;
  }
}

function numberOf(offset: string): number {
  return Number(offset.split('.')[1]);
}

import type { Session } from 'socket.io-adapter';
import type { Broadcast } from './session-store.js';

/** A middleware that takes longer has its client miss packets. */
const MAX_MS = 30_000;

/** A client who is coming back. */
export class Late {
  /** Since the hub was asked what it has missed. Once sent to others, they end with their offset. */
  readonly packets: { readonly offset: string; readonly broadcast: Broadcast }[] = [];
  /** With the last packet that the hub has told of. */
  session: (Session & { readonly upTo: string }) | undefined;

  /** What it has missed up to now, as a socket in these rooms. */
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
 * Between the hub's answer and the moment at which a socket counts as connected, which middlewares
 * may delay, Socket.IO sends it nothing: it would miss what comes then.
 */
export class LateComers {
  readonly #all = new Set<Late>();

  note(offset: string, broadcast: Broadcast): void {
    for (const { packets } of this.#all) packets.push({ offset, broadcast });
  }

  begin(): Late {
    const late = new Late();
    this.#all.add(late);
    setTimeout(() => this.#all.delete(late), MAX_MS).unref();
    return late;
  }

  end(late: Late): void {
    this.#all.delete(late);
  }

  /** @returns the one whose socket this is, which is late no more. */
  take(sid: string): Late | undefined {
    for (const late of this.#all) {
      if (late.session?.sid !== sid) continue;
      this.end(late);
      return late;
    }
    return undefined;
  }
}

function numberOf(offset: string): number {
  return Number(offset.split('.')[1]);
}

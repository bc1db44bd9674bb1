import { readFileSync } from 'node:fs';
import type { Server, Socket } from 'node:net';
import type { RelayLimit } from '../../contract/snapshot/index.js';
import type { RequestTracker } from './request-tracker.js';

/** Descriptors that connections leave to the rest of the process: at least, and at most. */
const MIN_RESERVE = 64;
const MAX_RESERVE = 1_024;
/** Between these, a share of all. */
const RESERVE_RATIO = 0.25;

/** Share of the limit above which nothing is relayed: the rest is for other clients and probes. */
const RELAY_RATIO = 0.875;

/** Time for a connection to send its first byte once the limit is reached. */
const SILENT_GRACE_MS = 1_000;

/** Node compares it with the connections of one server: any number is too many. */
const NO_ROOM = -1;

/** How many connections a process may hold if it may have so many descriptors open. */
export function connectionsWithin(openFiles: number): number {
  const share = Math.ceil(openFiles * RESERVE_RATIO);
  const reserve = Math.min(Math.max(share, MIN_RESERVE), MAX_RESERVE, Math.ceil(openFiles / 2));
  return openFiles - reserve;
}

/**
 * How many files and sockets this process may have open: the soft limit, which Node raises to the
 * hard one when it starts. `Infinity` without a limit, and on a system without /proc.
 */
export function openFilesLimit(
  read = (): string => readFileSync('/proc/self/limits', 'utf8'),
): number {
  try {
    const limit = Number(/^Max open files\s+(\d+)/m.exec(read())?.[1]);
    return limit > 0 ? limit : Infinity;
  } catch {
    return Infinity;
  }
}

/** Node 20's types lack `dropMaxConnection`; no types have the number that Node compares, or the handle. */
type ListeningServer = Server & {
  dropMaxConnection?: boolean;
  readonly _connections?: number;
  readonly _handle?: unknown;
};

const NODE_MAJOR = Number(process.versions.node.split('.')[0]);

/** Such a server has a plain object from node:cluster in place of a socket's handle. */
function isHandedConnections({ _handle: handle }: ListeningServer): boolean {
  const isObject = typeof handle === 'object' && handle !== null;
  return isObject && Object.getPrototypeOf(handle) === Object.prototype;
}

/** A server, and what else listens for it. */
interface Limited {
  readonly listeners: ListeningServer[];
  /** The app's own limit; `undefined` within it means none. */
  chosen?: { readonly max: number | undefined };
}

/**
 * Turns connections away before the process has no descriptor left. It uses Node's `maxConnections`,
 * for all sockets that the process listens on together. A value that the app sets on a server holds
 * for that server.
 */
export class ConnectionLimit implements RelayLimit {
  readonly #max: number;
  readonly #limited = new WeakMap<Server, Limited>();
  /** Connections to and from other workers. */
  #relaying = 0;
  #told = false;
  #sweep: NodeJS.Timeout | undefined;

  /** @param warn is told once when connections are turned away, in one line. */
  constructor(
    private readonly tracker: RequestTracker,
    private readonly warn: (message: string) => void,
    private readonly openFiles = openFilesLimit(),
  ) {
    this.#max = connectionsWithin(openFiles);
  }

  admits(): boolean {
    const isFree = this.#open < this.#max * RELAY_RATIO;
    if (!isFree) this.#onDrop();
    return isFree;
  }

  count(socket: Socket): void {
    this.#relaying += 1;
    socket.once('close', () => (this.#relaying -= 1));
  }

  /** Limits a server of the app, which listens; a second call for it changes nothing. */
  applyTo(server: ListeningServer): void {
    if (this.#limited.has(server)) return;
    const limited: Limited = { listeners: [] };
    this.#limited.set(server, limited);
    // If node:cluster hands out connections and all workers are full, a refused one goes from worker
    // to worker without end. From Node 22.12 on they may drop it instead.
    if (isHandedConnections(server) && NODE_MAJOR < 22) return this.#closeWhatCame(server);
    server.dropMaxConnection ??= true;
    if (typeof server.maxConnections === 'number') limited.chosen = { max: server.maxConnections };
    this.#limit(server, limited);
  }

  /** Counts what comes over another listener as connections of `server`. */
  share(listener: Server, server: Server): void {
    this.applyTo(server);
    this.#limit(listener, this.#limited.get(server)!);
  }

  #limit(listener: ListeningServer, limited: Limited): void {
    limited.listeners.push(listener);
    Object.defineProperty(listener, 'maxConnections', {
      configurable: true,
      enumerable: true,
      get: () => this.#maxOf(limited),
      set: (max: number | undefined) => {
        limited.chosen = { max };
      },
    });
    listener.on('drop', () => this.#onDrop(limited));
  }

  #maxOf({ chosen, listeners }: Limited): number | undefined {
    if (chosen === undefined) return this.#isFull ? NO_ROOM : this.#max;
    const open = listeners.reduce((sum, { _connections }) => sum + (_connections ?? 0), 0);
    return chosen.max !== undefined && open >= chosen.max ? NO_ROOM : chosen.max;
  }

  /** A worker without a descriptor would lose a handle that is sent to it, and its channel with it. */
  #closeWhatCame(server: Server): void {
    if (typeof server.maxConnections === 'number') return;
    server.prependListener('connection', (socket) => {
      if (!this.#isFull) return;
      socket.destroy();
      this.#onDrop();
    });
  }

  get #isFull(): boolean {
    return this.#open >= this.#max;
  }

  get #open(): number {
    return this.tracker.openConnections + this.#relaying;
  }

  #onDrop(limited?: Limited): void {
    this.tracker.droppedConnections += 1;
    if (limited?.chosen !== undefined) return;
    this.#makeRoom();
    if (this.#told) return;
    this.#told = true;
    this.warn(
      `turns connections away: ${this.#max} are open, and it may open ${this.openFiles} files and sockets in all; raise that limit (ulimit -n, LimitNOFILE= of systemd)`,
    );
  }

  /** Closes connections that have not sent a byte, and have still sent none after a while. */
  #makeRoom(): void {
    if (this.#sweep !== undefined) return;
    const silent = [...this.tracker.connections].filter(({ socket }) => socket.bytesRead === 0);
    this.#sweep = setTimeout(() => {
      this.#sweep = undefined;
      for (const { socket } of silent) {
        if (socket.bytesRead > 0 || socket.destroyed) continue;
        this.tracker.droppedConnections += 1;
        socket.destroy();
      }
    }, SILENT_GRACE_MS).unref();
  }
}

import { readFileSync } from 'node:fs';
import type { Server } from 'node:net';
import { onceEach } from '../../contract/errors/index.js';
import type { RequestTracker } from '../serve/tracker.js';

/** The smallest and largest number of file descriptors kept free for the rest of the process. */
const MIN_RESERVE = 64;
const MAX_RESERVE = 1_024;
/** The share of all file descriptors that is kept free, if it is between the minimum and the maximum. */
const RESERVE_RATIO = 0.25;

/** Once the limit is reached, a connection is closed if it sends no first byte within this time. */
const SILENT_GRACE_MS = 1_000;

/** A value of `maxConnections` that makes Node refuse every connection. */
const NO_ROOM = -1;

/** How many connections a process may hold if it may have `openFiles` descriptors open. */
export function connectionsWithin(openFiles: number): number {
  const share = Math.ceil(openFiles * RESERVE_RATIO);
  const reserve = Math.min(Math.max(share, MIN_RESERVE), MAX_RESERVE, Math.ceil(openFiles / 2));
  return openFiles - reserve;
}

/**
 * How many files and sockets this process may have open. Reads the soft limit, which Node raises to
 * the hard limit when it starts. `Infinity` without a limit, and on a system without /proc.
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

/** Node's types lack these properties. Node compares `_connections` with `maxConnections`. */
type ListeningServer = Server & {
  dropMaxConnection?: boolean;
  readonly _connections?: number;
  readonly _handle?: unknown;
};

const NODE_MAJOR = Number(process.versions.node.split('.')[0]);

/** Whether node:cluster hands connections to the server. Such a server's handle is a plain object. */
function isHandedConnections({ _handle: handle }: ListeningServer): boolean {
  const isObject = typeof handle === 'object' && handle !== null;
  return isObject && Object.getPrototypeOf(handle) === Object.prototype;
}

/** A limited server of the app. `listeners` also holds adopted sockets that feed the server. */
interface Limited {
  readonly listeners: ListeningServer[];
  /** Set if the app chose a limit for its server. A `max` of `undefined` means no limit. */
  chosen?: { readonly max: number | undefined };
}

/**
 * Refuses connections before the process runs out of file descriptors. Sets Node's `maxConnections`
 * so that the limit counts the connections of all sockets that the process listens on together. If
 * the app sets `maxConnections` on a server, the app's value holds for that server.
 */
export class ConnectionLimit {
  readonly #max: number;
  readonly #limited = new WeakMap<Server, Limited>();
  readonly #warnOnce = onceEach((message) => this.warn(message));
  #sweep: NodeJS.Timeout | undefined;

  /** @param warn logs a line when connections are refused. */
  constructor(
    private readonly tracker: RequestTracker,
    private readonly warn: (message: string) => void,
    private readonly openFiles = openFilesLimit(),
  ) {
    this.#max = connectionsWithin(openFiles);
  }

  /** Limits a listening server of the app. A second call for the server changes nothing. */
  applyTo(server: ListeningServer): void {
    if (this.#limited.has(server)) return;
    const limited: Limited = { listeners: [] };
    this.#limited.set(server, limited);
    // If node:cluster hands out connections and all workers are full, a refused connection would pass
    // from worker to worker without end. From Node 22.12 on, the worker can drop the connection.
    if (isHandedConnections(server) && NODE_MAJOR < 22) return this.#closeWhatCame(server);
    server.dropMaxConnection ??= true;
    if (typeof server.maxConnections === 'number') limited.chosen = { max: server.maxConnections };
    this.#limit(server, limited);
  }

  /** Counts the connections of another listener as connections of `server`. */
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

  /**
   * Closes connections above the limit after they were accepted. A worker without a free descriptor
   * would lose the next handle that the primary sends, and its IPC channel with it.
   */
  #closeWhatCame(server: Server): void {
    if (typeof server.maxConnections === 'number') return;
    server.prependListener('connection', (socket) => {
      if (!this.#isFull) return;
      socket.destroy();
      this.#onDrop();
    });
  }

  get #isFull(): boolean {
    return this.tracker.openConnections >= this.#max;
  }

  #onDrop(limited?: Limited): void {
    this.tracker.droppedConnections += 1;
    if (limited?.chosen !== undefined) return;
    this.#makeRoom();
    this.#warnOnce(
      `turns connections away: ${this.#max} are open, and it may open ${this.openFiles} files and sockets in all; raise that limit (ulimit -n, LimitNOFILE= of systemd)`,
    );
  }

  /** Closes connections that have sent nothing yet, if they still send nothing in the grace time. */
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

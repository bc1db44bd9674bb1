import { closeSync, openSync, readlinkSync, readSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { type AddressedHandle, QueuePlug } from './queue-plug.js';

/** A listening socket as net.Server holds it: `server._handle`; the same on Node 20 to 26. */
export interface ListeningHandle extends AddressedHandle {
  /** Missing if node:cluster hands the process its connections: then the primary has the socket. */
  readonly fd?: number;
  listen(backlog: number): number;
  /** Called when libuv has accepted a connection or the primary has handed one over. */
  onconnection: (...args: unknown[]) => unknown;
}

/**
 * Length of the accept queue. The kernel caps it at net.core.somaxconn (4096
 * by default); it is where connections wait while no worker is alive.
 */
export const BACKLOG = 4_096;

/** The time between two tries to accept from a queue. */
const RETRY_MS = 10;

/** The primary may be busy between two connections that it hands over. */
const HANDED_OVER_QUIET_MS = 100;

/** The connections that the kernel has accepted on a listening socket and no process has. */
export class AcceptQueue {
  #accepted = 0;
  readonly #inode: string | undefined;

  constructor(private readonly handle: ListeningHandle) {
    this.#inode = inodeOf(handle.fd);
    const accept = handle.onconnection;
    handle.onconnection = (...args) => {
      this.#accepted += 1;
      return accept.apply(handle, args);
    };
  }

  /**
   * Accepts until the queue is empty, and closes the socket by `close`. On Linux hardly any
   * connection joins the queue during this time: with a backlog of 0 the queue has one place, which
   * a {@link QueuePlug} takes at the end, and the kernel ignores new clients. Elsewhere it accepts
   * as many connections as can have waited.
   *
   * @returns how many connections the kernel reset, if `signal` ended the wait.
   */
  async emptyAndClose(signal: AbortSignal, close: () => void): Promise<number> {
    const held = this.#isHeldHere();
    if (held) this.handle.listen(0);
    const round = held ? pollOnce : () => quietTime(signal);
    await pollOnce(); // the poll that is under way may have begun before the last connection came
    while (!signal.aborted && this.#accepted <= BACKLOG) {
      const before = this.#accepted;
      await round();
      if (this.#accepted > before) continue;
      if (this.#length === 0 && (await this.#closeEmpty(close))) return 0;
      // The process may have no file descriptor left.
      await delay(RETRY_MS);
    }
    return closeCounting(this.handle.fd, close);
  }

  /** Closes the socket, unless a client has joined. */
  async #closeEmpty(close: () => void): Promise<boolean> {
    const plug = this.#isHeldHere() ? await QueuePlug.put(this.handle) : undefined;
    try {
      if (plug !== undefined && !plug.holds && this.#length > 0) return false;
      close(); // at once, before the event loop accepts the plug
      return true;
    } finally {
      plug?.remove();
    }
  }

  get #length(): number {
    return lengthOf(this.#inode) ?? 0;
  }

  #isHeldHere(): boolean {
    return this.handle.fd !== undefined && this.handle.fd >= 0;
  }
}

/** Closes a listening socket by `close`. @returns how many connections the kernel reset for that. */
export function closeCounting(fd: number | undefined, close: () => void): number {
  const inode = inodeOf(fd);
  const waiting = lengthOf(inode) ?? 0;
  close();
  // Another process may still hold the socket, and accept them.
  return waiting > 0 && lengthOf(inode) === undefined ? waiting : 0;
}

/** Resolves once the event loop has asked the kernel for events and has handled them. */
export function pollOnce(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

async function quietTime(signal: AbortSignal): Promise<void> {
  await delay(HANDED_OVER_QUIET_MS, undefined, { signal }).catch(() => {});
  await pollOnce();
}

/** The inode that identifies a socket in /proc/net; `undefined` without /proc. */
function inodeOf(fd: number | undefined): string | undefined {
  if (fd === undefined || fd < 0) return undefined;
  try {
    return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/self/fd/${fd}`))?.[1];
  } catch {
    return undefined;
  }
}

/** Connections in the accept queue of a TCP socket; `undefined` if no such socket listens, or without /proc. */
function lengthOf(inode: string | undefined): number | undefined {
  if (inode === undefined) return undefined;
  for (const path of ['/proc/net/tcp', '/proc/net/tcp6']) {
    for (const row of listeningRows(path)) {
      // proc(5): …, state, tx_queue:rx_queue, timer, retransmits, uid, timeout, inode, …
      const fields = row.trim().split(/\s+/);
      if (fields[9] === inode) return Number.parseInt(fields[4]!.split(':')[1]!, 16);
    }
  }
  return undefined;
}

/** The state TCP_LISTEN in proc(5). */
const LISTEN = '0A';

/** The kernel gives at most a page at a time. */
const PAGE_BYTES = 4_096;

/** The kernel lists sockets that listen before all others, of which there may be very many. */
function* listeningRows(path: string): Generator<string> {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch {
    return;
  }
  try {
    const page = Buffer.alloc(PAGE_BYTES);
    let rest = '';
    for (let first = true; ; first = false) {
      const bytes = readSync(file, page);
      if (bytes === 0) return;
      const rows = (rest + page.toString('latin1', 0, bytes)).split('\n');
      rest = rows.pop()!;
      for (const row of first ? rows.slice(1) : rows) {
        if (row.trim().split(/\s+/)[3] !== LISTEN) return;
        yield row;
      }
    }
  } catch {
    return;
  } finally {
    closeSync(file);
  }
}

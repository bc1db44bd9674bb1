import { closeSync, openSync, readlinkSync, readSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/** Node's diagnostics channel for servers that begin to listen, since Node 20.16 and 22.3. */
export const LISTENING = 'tracing:net.server.listen:asyncEnd';

/** The handle of a listening net.Server: its internal `_handle`, which is the same on Node 20 to 26. */
export interface ListeningHandle {
  /** Missing if the primary has the socket, and node:cluster hands connections to this process. */
  readonly fd?: number;
  listen(backlog: number): number;
  /** Called when libuv has accepted a connection, or the primary has handed a connection over. */
  onconnection: (...args: unknown[]) => unknown;
}

/**
 * Length of the accept queue, in which connections wait while no worker is alive. The kernel caps
 * the length at net.core.somaxconn (4096 by default).
 */
export const BACKLOG = 4_096;

const RETRY_MS = 10;

/** If the primary hands over connections, the queue counts as empty after this many ms without a connection. */
const HANDED_OVER_QUIET_MS = 100;

/**
 * Accepts until the accept queue of a listening socket is empty, then calls `close` to close the
 * socket. On Linux hardly any connections join the queue meanwhile: with a backlog of 0 the queue
 * has one place. Also stops after accepting more connections than the queue can hold.
 */
export async function emptyAndClose(
  handle: ListeningHandle,
  signal: AbortSignal,
  close: () => void,
): Promise<void> {
  const inode = inodeOf(handle.fd);
  const held = (handle.fd ?? -1) >= 0;
  let accepted = 0;
  const accept = handle.onconnection;
  handle.onconnection = (...args) => {
    accepted += 1;
    return accept.apply(handle, args);
  };
  if (held) handle.listen(0);
  await pollOnce(); // the current poll may have begun before the last connection arrived
  while (!signal.aborted && accepted <= BACKLOG) {
    const before = accepted;
    await (held ? pollOnce() : quietTime(signal));
    if (accepted > before) continue;
    if (inode === undefined || (queueLengths([inode]).get(inode) ?? 0) === 0) break;
    // Wait and try again: the process may have no file descriptor left to accept with.
    await delay(RETRY_MS);
  }
  close();
}

/** Resolves once the event loop has polled the kernel for events and has handled them. */
export function pollOnce(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

async function quietTime(signal: AbortSignal): Promise<void> {
  await delay(HANDED_OVER_QUIET_MS, undefined, { signal }).catch(() => {});
  await pollOnce();
}

/** The inode that identifies a socket in /proc/net; `undefined` without /proc. */
export function inodeOf(fd: number | undefined): string | undefined {
  if (fd === undefined || fd < 0) return undefined;
  try {
    return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/self/fd/${fd}`))?.[1];
  } catch {
    return undefined;
  }
}

/** The accept queue lengths of TCP sockets, by inode. Only listening sockets have a queue. Empty without /proc. */
export function queueLengths(inodes: readonly string[]): ReadonlyMap<string, number> {
  const lengths = new Map<string, number>();
  const missing = new Set(inodes);
  for (const path of ['/proc/net/tcp', '/proc/net/tcp6']) {
    if (missing.size === 0) break;
    for (const { inode, length } of listeningRows(path)) {
      if (!missing.delete(inode)) continue;
      lengths.set(inode, length);
      if (missing.size === 0) break;
    }
  }
  return lengths;
}

/** The state TCP_LISTEN in proc(5). */
const LISTEN = '0A';
/** The header of the state column. */
const HEADER = 'st';

/**
 * About the length of a row. To fill a longer buffer, the kernel would search its whole table of
 * connections, which is slow.
 */
const ROW_BYTES = 150;

/** Reads only the rows of listening sockets. They come first, and many connection rows may follow. */
function* listeningRows(path: string): Generator<{ inode: string; length: number }> {
  let file: number | undefined;
  try {
    file = openSync(path, 'r');
    const buffer = Buffer.alloc(ROW_BYTES);
    let rest = '';
    for (;;) {
      const bytes = readSync(file, buffer);
      if (bytes === 0) return;
      const rows = (rest + buffer.toString('latin1', 0, bytes)).split('\n');
      rest = rows.pop()!;
      for (const row of rows) {
        // proc(5): …, state, tx_queue:rx_queue, timer, retransmits, uid, timeout, inode, …
        const [, , , state, queues, , , , , inode] = row.trim().split(/\s+/);
        if (state === LISTEN) {
          yield { inode: inode!, length: Number.parseInt(queues!.split(':')[1]!, 16) };
        } else if (state !== HEADER) return;
      }
    }
  } catch {
    return; // without /proc
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

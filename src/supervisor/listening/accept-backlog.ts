import { readFileSync } from 'node:fs';
import { queueLengths } from '../../contract/process/accept-queue.js';
import type { Backlog } from '../../contract/snapshot/index.js';
import type { Listening } from './listening.interface.js';

/**
 * The connections that the kernel holds until a worker accepts them, for each address. Sockets on
 * one address count together. An address whose queue cannot be read is left out: it is no TCP
 * socket that the primary holds, or the system has no /proc.
 */
export function acceptBacklog({ sockets }: Pick<Listening, 'sockets'>): Backlog[] {
  const lengths = queueLengths(sockets.flatMap(({ inode }) => inode ?? []));
  const waiting = new Map<string, number>();
  for (const { inode, url } of sockets) {
    const length = lengths.get(inode ?? '');
    // A socket has no queue until its worker listens.
    if (length !== undefined) waiting.set(url, (waiting.get(url) ?? 0) + length);
  }
  return [...waiting].map(([socket, connections]) => ({ socket, connections }));
}

/**
 * How often a full accept queue has turned a connection away since the machine started, over all
 * sockets of the network namespace. `null` without /proc.
 */
export function listenOverflows(read = () => readFileSync('/proc/net/netstat', 'latin1')) {
  try {
    const [names = [], values = []] = read()
      .split('\n')
      .filter((line) => line.startsWith('TcpExt:'))
      .map((line) => line.split(' '));
    const value = values[names.indexOf('ListenOverflows')];
    return value === undefined ? null : Number(value);
  } catch {
    return null;
  }
}

import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** TCP_LISTEN, in the notation of `/proc/net/tcp`; see proc(5). */
const LISTEN = '0A';

/** A TCP socket over IPv4, as the kernel lists it. */
export interface KernelSocket {
  readonly localPort: number;
  readonly remotePort: number;
  readonly listens: boolean;
  /** Connections in its accept queue, where it listens. */
  readonly queued: number;
  /** 0 while nobody has accepted it, and once it is closed. */
  readonly inode: number;
}

/** The sockets that listen and that a process has open. One has the same inode in several processes. */
export function listenersOf(pid: number): KernelSocket[] {
  return socketsOf(pid)
    .filter(({ listens }) => listens)
    .toSorted((a, b) => a.localPort - b.localPort || a.inode - b.inode);
}

/**
 * Ports of the clients whose connections to one of `ports` a process has open: what it has
 * accepted or has been handed. It should stand still.
 */
export function acceptedBy(pid: number, ports: readonly number[]): Set<number> {
  // The kernel may leave one out where others come and go while it lists them: so twice.
  return new Set(
    [...socketsOf(pid), ...socketsOf(pid)]
      .filter(({ listens, localPort }) => !listens && ports.includes(localPort))
      .map(({ remotePort }) => remotePort),
  );
}

function socketsOf(pid: number): KernelSocket[] {
  const inodes = inodesOf(pid);
  return tcpSockets().filter(({ inode }) => inodes.has(inode));
}

function inodesOf(pid: number): Set<number> {
  const inodes = new Set<number>();
  for (const descriptor of readdirSync(`/proc/${pid}/fd`)) {
    try {
      const [, inode] = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${descriptor}`))!;
      inodes.add(Number(inode));
    } catch {
      // the descriptor is not a socket, or was closed since
    }
  }
  return inodes;
}

function tcpSockets(): KernelSocket[] {
  const [, ...rows] = readFileSync('/proc/net/tcp', 'utf8').trim().split('\n');
  return rows.map((row) => {
    const fields = row.trim().split(/\s+/);
    const portOf = (address: string) => Number.parseInt(address.slice(-4), 16);
    return {
      localPort: portOf(fields[1]!),
      remotePort: portOf(fields[2]!),
      listens: fields[3] === LISTEN,
      queued: Number.parseInt(fields[4]!.split(':')[1]!, 16),
      inode: Number(fields[9]),
    };
  });
}

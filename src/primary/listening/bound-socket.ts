import { readFileSync } from 'node:fs';
import net from 'node:net';
import { constants } from 'node:os';
import { getSystemErrorName } from 'node:util';
import { ClusterAddressError } from '../../contract/errors/errors.js';
import type { ListenTarget } from '../../contract/messages.js';
import type { ListenAddress } from '../../contract/options/resolve.js';
import { removeSocket, removeStaleSocket } from '../../contract/files/sockets.js';
import { inodeOf } from '../../contract/process/accept-queue.js';

/** libuv's handle of a bound socket that does not listen: Node's internal `TCP` or `Pipe`. */
export interface ServerHandle {
  close(): void;
  readonly fd?: number;
  getsockname?(out: { address?: string; port?: number }): number;
}

/**
 * The internal function by which node:cluster binds a socket. It is undocumented and the same
 * on Node 20 to 26. If it is missing, {@link BoundSocket} has no handle.
 */
type CreateServerHandle = (
  address: string | null,
  port: number | null,
  addressType: 4 | 6 | -1 | null,
  fd?: number,
  flags?: number,
) => ServerHandle | number;

const createServerHandle = (net as unknown as { _createServerHandle?: CreateServerHandle })
  ._createServerHandle;

/** The flag for SO_REUSEPORT, since libuv 1.49. Node has passed it to libuv since 22.12. */
const UV_TCP_REUSEPORT = 2;

/** A socket that the primary binds and keeps open. The primary never accepts connections on it. */
export class BoundSocket {
  #inode: string | undefined;

  private constructor(
    readonly target: ListenTarget,
    /** `undefined` if the primary does not hold the socket. In this case workers listen through node:cluster. */
    readonly handle: ServerHandle | undefined,
  ) {}

  /** @throws ClusterAddressError when the address is taken, forbidden or unknown. */
  static async open(address: ListenAddress): Promise<BoundSocket> {
    try {
      return address.kind === 'unix'
        ? await BoundSocket.#openUnix(address.path)
        : await BoundSocket.#openTcp(address.port, address.host);
    } catch (error) {
      throw new ClusterAddressError(formatAddress(address), error as NodeJS.ErrnoException);
    }
  }

  static async #openTcp(port: number, host: string | undefined): Promise<BoundSocket> {
    const hosts = host === undefined ? ALL_INTERFACES : [await resolveHost(host)];
    if (createServerHandle === undefined) {
      return new BoundSocket({ kind: 'tcp', port, host: hosts.at(-1)! }, undefined);
    }
    let failure: NodeJS.ErrnoException | undefined;
    for (const each of hosts) {
      try {
        return BoundSocket.#bindTcp(each, port, 0);
      } catch (error) {
        failure = error as NodeJS.ErrnoException;
        if (failure.code !== 'EAFNOSUPPORT' && failure.code !== 'EADDRNOTAVAIL') break;
      }
    }
    throw failure ?? new Error('no address to bind');
  }

  static #bindTcp(host: string, port: number, flags: number): BoundSocket {
    const handle = createServerHandle!(host, port, net.isIPv6(host) ? 6 : 4, undefined, flags);
    if (typeof handle === 'number') throw systemError('bind', handle);
    const bound: { port?: number } = {};
    // libuv does not report a failed bind until a later call, such as getsockname.
    const status = handle.getsockname?.(bound) ?? 0;
    if (status === 0) {
      return new BoundSocket({ kind: 'tcp', port: bound.port ?? port, host }, handle);
    }
    handle.close();
    throw systemError('bind', status);
  }

  static async #openUnix(path: string): Promise<BoundSocket> {
    await removeStaleSocket(path);
    const handle = createServerHandle?.(path, -1, -1);
    if (typeof handle === 'number') throw systemError('bind', handle);
    return new BoundSocket({ kind: 'unix', path }, handle);
  }

  /**
   * Takes a socket that systemd passed to this process. libuv does not remove the file of such a unix
   * socket when the socket is closed.
   *
   * @throws Error if the descriptor is not a listening stream socket.
   */
  static activated(fd: number): BoundSocket {
    const handle = createServerHandle?.(null, null, null, fd);
    if (handle === undefined || typeof handle === 'number') {
      throw systemError('open', handle ?? -constants.errno.ENOSYS);
    }
    const bound: { address?: string; port?: number } = {};
    if (handle.getsockname?.(bound) === 0) {
      const { address: host, port } = bound as Required<typeof bound>;
      return new BoundSocket({ kind: 'tcp', port, host, activated: true }, handle);
    }
    const path = unixPathOf(fd);
    if (path === undefined) throw systemError('getsockname', -constants.errno.ENOTSOCK);
    return new BoundSocket({ kind: 'unix', path, activated: true }, handle);
  }

  /**
   * Binds another TCP socket on the same host. With `reusePort`, such sockets can share a port.
   *
   * @throws ClusterAddressError
   */
  another(port: number, { reusePort }: { reusePort: boolean }): BoundSocket {
    const { host } = this.target as ListenTarget & { kind: 'tcp' };
    try {
      return BoundSocket.#bindTcp(host, port, reusePort ? UV_TCP_REUSEPORT : 0);
    } catch (error) {
      const address = formatAddress({ kind: 'tcp', host, port });
      throw new ClusterAddressError(address, error as NodeJS.ErrnoException);
    }
  }

  /** Closes the socket, and returns its address without a handle. */
  letGo(): BoundSocket {
    this.close();
    return new BoundSocket(this.target, undefined);
  }

  get url(): string {
    return formatAddress(this.target);
  }

  /** Identifies the socket in /proc/net; `undefined` without a handle or without /proc. */
  get inode(): string | undefined {
    return (this.#inode ??= inodeOf(this.handle?.fd));
  }

  get port(): number | undefined {
    return this.target.kind === 'tcp' ? this.target.port : undefined;
  }

  /** Closes the socket, and removes the file of a unix socket that systemd does not hold. */
  close(): void {
    const { handle, target } = this;
    if (handle === undefined) return;
    if (target.kind === 'unix' && target.activated !== true) removeSocket(target.path);
    handle.close();
  }
}

/** `http://127.0.0.1:3000`, or `unix:/run/app.sock`. */
export function formatAddress(address: ListenAddress): string {
  if (address.kind === 'unix') return `unix:${address.path}`;
  const host = address.host ?? '0.0.0.0';
  return `http://${host.includes(':') ? `[${host}]` : host}:${address.port}`;
}

/** The addresses of node:net if no host is given. '0.0.0.0' is for machines without IPv6. */
const ALL_INTERFACES = ['::', '0.0.0.0'];

/** The IP address of a host. To save memory, node:dns is loaded only if the host is a name. */
async function resolveHost(host: string): Promise<string> {
  if (net.isIP(host) !== 0) return host;
  const { lookup } = await import('node:dns/promises');
  return (await lookup(host)).address;
}

/** The path of a unix socket; `undefined` without /proc, or if the descriptor is not a unix socket. */
function unixPathOf(fd: number): string | undefined {
  const inode = inodeOf(fd);
  if (inode === undefined) return undefined;
  // Num, RefCount, Protocol, Flags, Type, St, Inode, Path
  const rows = readFileSync('/proc/net/unix', 'utf8').split('\n');
  return rows
    .map((row) => /^(?:\S+\s+){6}(\d+) (.+)$/.exec(row))
    .find((row) => row?.[1] === inode)?.[2];
}

function systemError(call: string, status: number): NodeJS.ErrnoException {
  const code = getSystemErrorName(status);
  return Object.assign(new Error(`${call} ${code}`), { code, errno: status, syscall: call });
}

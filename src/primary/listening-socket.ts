import net from 'node:net';
import { getSystemErrorName } from 'node:util';
import { AddressUnavailableError } from '../errors/index.js';
import type { ListenTarget } from '../ipc/index.js';
import type { ListenAddress } from '../options/index.js';

/** A bound socket of libuv that is not listening: `TCP` or `Pipe`. */
export interface ServerHandle {
  close(): void;
  getsockname?(out: { address?: string; port?: number }): number;
}

/**
 * What node:cluster itself calls to bind a socket. Undocumented, the same on
 * Node 20 to 26; where it is gone, {@link ListeningSocket} is not held.
 */
type CreateServerHandle = (
  address: string,
  port: number,
  addressType: 4 | 6 | -1,
) => ServerHandle | number;

const createServerHandle = (net as unknown as { _createServerHandle?: CreateServerHandle })
  ._createServerHandle;

/**
 * The socket of the whole cluster. The primary binds it and holds it, so that
 * it outlives every worker: connections made while none is alive wait in its
 * backlog. The primary never accepts from it.
 */
export class ListeningSocket {
  private constructor(
    readonly target: ListenTarget,
    /** `undefined` where this Node cannot hold a socket: workers then listen through node:cluster. */
    readonly handle: ServerHandle | undefined,
  ) {}

  /** @throws AddressUnavailableError when the address is taken, forbidden or unknown. */
  static async open(address: ListenAddress): Promise<ListeningSocket> {
    try {
      return address.kind === 'unix'
        ? await ListeningSocket.#openUnix(address.path)
        : await ListeningSocket.#openTcp(address.port, address.host);
    } catch (error) {
      throw new AddressUnavailableError(formatAddress(address), error as NodeJS.ErrnoException);
    }
  }

  static async #openTcp(port: number, host: string | undefined): Promise<ListeningSocket> {
    const addresses =
      host === undefined
        ? // As node:net does: all interfaces, by IPv6 and IPv4 where there is IPv6.
          [
            { address: '::', family: 6 },
            { address: '0.0.0.0', family: 4 },
          ]
        : [await resolveHost(host)];
    if (createServerHandle === undefined) {
      return new ListeningSocket({ kind: 'tcp', port, host: addresses.at(-1)!.address }, undefined);
    }
    let failure: NodeJS.ErrnoException | undefined;
    for (const { address, family } of addresses) {
      const handle = createServerHandle(address, port, family === 6 ? 6 : 4);
      const bound: { port?: number } = {};
      // libuv keeps a failed bind to itself until somebody asks for the name.
      const status = typeof handle === 'number' ? handle : (handle.getsockname?.(bound) ?? 0);
      if (status === 0 && typeof handle !== 'number') {
        return new ListeningSocket(
          { kind: 'tcp', port: bound.port ?? port, host: address },
          handle,
        );
      }
      if (typeof handle !== 'number') handle.close();
      failure = systemError('bind', status);
      if (failure.code !== 'EAFNOSUPPORT' && failure.code !== 'EADDRNOTAVAIL') break;
    }
    throw failure ?? new Error('no address to bind');
  }

  static async #openUnix(path: string): Promise<ListeningSocket> {
    await removeStaleSocket(path);
    const handle = createServerHandle?.(path, -1, -1);
    if (typeof handle === 'number') throw systemError('bind', handle);
    return new ListeningSocket({ kind: 'unix', path }, handle);
  }

  get url(): string {
    return formatAddress(this.target);
  }

  /** Lets go of the address; libuv also removes a unix socket's file. */
  close(): void {
    this.handle?.close();
  }
}

/** `http://127.0.0.1:3000`, or `unix:/run/app.sock`. */
export function formatAddress(address: ListenAddress): string {
  if (address.kind === 'unix') return `unix:${address.path}`;
  const host = address.host ?? '0.0.0.0';
  return `http://${host.includes(':') ? `[${host}]` : host}:${address.port}`;
}

/** The IP address of a host. The resolver is loaded for names alone: the primary stays small. */
async function resolveHost(host: string): Promise<{ address: string; family: number }> {
  const family = net.isIP(host);
  if (family !== 0) return { address: host, family };
  const { lookup } = await import('node:dns/promises');
  return lookup(host);
}

/**
 * Removes the socket file that a killed process left. One that answers, is not
 * a socket or is somebody else's is left alone.
 */
async function removeStaleSocket(path: string): Promise<void> {
  const { lstat, unlink } = await import('node:fs/promises');
  const stat = await lstat(path).catch(() => undefined);
  if (stat === undefined) return;
  if (!stat.isSocket() || stat.uid !== process.geteuid?.()) throw addressInUse(path);
  const answer = await new Promise<'taken' | 'stale'>((resolve) => {
    const probe = net.connect(path, () => resolve('taken'));
    probe.on('error', (error: NodeJS.ErrnoException) =>
      resolve(error.code === 'ECONNREFUSED' ? 'stale' : 'taken'),
    );
    probe.on('close', () => probe.destroy());
    probe.setTimeout(1_000, () => resolve('taken'));
  });
  if (answer === 'taken') throw addressInUse(path);
  await unlink(path);
}

function addressInUse(path: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${path} exists`), { code: 'EADDRINUSE' });
}

function systemError(call: string, status: number): NodeJS.ErrnoException {
  const code = getSystemErrorName(status);
  return Object.assign(new Error(`${call} ${code}`), { code, errno: status, syscall: call });
}

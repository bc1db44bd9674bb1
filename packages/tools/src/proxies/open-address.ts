import { connect, isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';

/** How long to wait for a connection. Without a packet filter, this machine answers at once. */
const TIMEOUT_MS = 500;

/**
 * Finds out whether other machines reach a port.
 *
 * @param addresses the addresses of this machine to try. Default: all but loopback and link-local.
 * @returns the first address that accepts a connection, with the port.
 */
export async function openAddress(
  port: number,
  addresses: readonly string[] = outerAddresses(),
): Promise<string | undefined> {
  const open = await Promise.all(addresses.map((address) => takesConnections(address, port)));
  const address = addresses[open.indexOf(true)];
  if (address === undefined) return undefined;
  return isIPv6(address) ? `[${address}]:${port}` : `${address}:${port}`;
}

/** @param address the result of {@link openAddress}. */
export function goesAround(address: string): string {
  return `the workers answer at ${address} as well: clients that connect there go around nginx, its limits and its X-Forwarded-For; start the cluster with host: '127.0.0.1'`;
}

function outerAddresses(): readonly string[] {
  return Object.values(networkInterfaces())
    .flatMap((each) => each ?? [])
    .filter(({ internal, address }) => !internal && !/^fe80:/i.test(address))
    .map(({ address }) => address);
}

function takesConnections(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: TIMEOUT_MS });
    const end = (isOpen: boolean) => {
      socket.destroy();
      resolve(isOpen);
    };
    socket.on('connect', () => end(true));
    socket.on('timeout', () => end(false));
    socket.on('error', () => end(false));
  });
}

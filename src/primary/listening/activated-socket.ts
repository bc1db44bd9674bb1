import { ClusterConfigurationError } from '../../contract/errors/errors.js';
import type { ListenAddress, ResolvedClusterOptions } from '../../contract/options/resolve.js';
import { BoundSocket, formatAddress } from './bound-socket.js';

type Options = Pick<ResolvedClusterOptions, 'address' | 'addressGiven' | 'balancing' | 'workers'>;

/** The first descriptor that systemd passes: SD_LISTEN_FDS_START of sd_listen_fds(3). */
const FIRST_DESCRIPTOR = 3;

/**
 * Takes the listening socket that systemd passed to this process (socket activation), and
 * removes systemd's variables, because no child has that socket. The socket is used instead of the
 * address in the options.
 *
 * @param warn is called if the options name another address.
 * @returns `undefined` if this process was started without a socket.
 * @throws ClusterConfigurationError if the cluster cannot use the passed descriptors.
 */
export function takeActivatedSocket(
  options: Options,
  warn: (message: string) => void,
  env: NodeJS.ProcessEnv = process.env,
): BoundSocket | undefined {
  const { LISTEN_PID: pid, LISTEN_FDS: count = '0' } = env;
  for (const name of ['LISTEN_PID', 'LISTEN_FDS', 'LISTEN_FDNAMES']) delete env[name];
  // This process may have inherited the variables from a program that systemd started.
  if (Number(pid) !== process.pid || count === '0') return undefined;
  if (count !== '1') {
    refuse(
      `systemd passes ${count} sockets (LISTEN_FDS), but a cluster uses only one; keep one ListenStream= in the .socket unit`,
    );
  }
  if (options.workers > 0 && options.balancing !== 'shared') {
    refuse(
      `systemd passes a socket (LISTEN_FDS), but balancing '${options.balancing}' needs its own sockets; set balancing to 'shared', or remove the .socket unit`,
    );
  }
  const socket = open();
  if (options.addressGiven && differs(options.address, socket)) {
    warn(
      `the options port, host and path are ignored, because systemd passes the socket ${socket.url} (LISTEN_FDS)`,
    );
  }
  return socket;
}

function open(): BoundSocket {
  try {
    return BoundSocket.activated(FIRST_DESCRIPTOR);
  } catch (error) {
    return refuse(
      `systemd passes a descriptor that is not a listening stream socket (LISTEN_FDS): ${(error as Error).message}; the .socket unit needs ListenStream= and Accept=no`,
    );
  }
}

/** Whether the address in the options names another socket. */
function differs(address: ListenAddress, { target, url }: BoundSocket): boolean {
  if (address.kind === 'unix' || target.kind === 'unix') return formatAddress(address) !== url;
  const { host = target.host } = address;
  return formatAddress({ kind: 'tcp', host, port: address.port || target.port }) !== url;
}

function refuse(message: string): never {
  throw new ClusterConfigurationError(message);
}

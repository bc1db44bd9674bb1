import cluster from 'node:cluster';
import { ClusterConfigurationError } from '../../contract/errors/index.js';
import type { ResolvedClusterOptions } from '../../contract/options/index.js';
import { whenFree } from '../../contract/process/when-free.js';
import { BoundSocket } from './bound-socket.js';
import type { Listening } from './listening.interface.js';
import { SharedListening } from './shared-listening.js';
import { SlotListening } from './slot-listening.js';

type Options = Pick<ResolvedClusterOptions, 'address' | 'balancing' | 'workers'>;

/**
 * Binds what the workers are to listen on.
 *
 * @throws ClusterAddressError when an address is taken, forbidden or unknown.
 * @throws ClusterConfigurationError where this Node cannot hold the sockets of slots.
 */
export function openListening(options: Options): Promise<Listening> {
  return whenFree(() => bind(options));
}

async function bind({ address, balancing, workers }: Options): Promise<Listening> {
  const socket = await BoundSocket.open(address);
  if (balancing === 'shared') {
    // If no socket can be held, node:cluster shares its own among the workers.
    if (socket.handle === undefined) cluster.schedulingPolicy = cluster.SCHED_NONE;
    return new SharedListening(balancing, socket);
  }
  if (balancing === 'round-robin') {
    cluster.schedulingPolicy = cluster.SCHED_RR;
    // It was bound to learn early whether the address can be had, and which port 0 means.
    return new SharedListening(balancing, socket.letGo());
  }
  if (socket.handle === undefined) {
    throw new ClusterConfigurationError(
      `balancing '${balancing}' needs net._createServerHandle of Node, which this one (${process.version}) does not have; set balancing to 'shared', which is the default`,
    );
  }
  const reusePort = balancing === 'reuse-port';
  // A socket with SO_REUSEPORT could be bound although another cluster has the port.
  socket.close();
  const listening = new SlotListening(balancing, (slot) =>
    socket.another(socket.port! + (reusePort ? 0 : slot), { reusePort }),
  );
  listening.reserve(workers);
  return listening;
}

import cluster from 'node:cluster';
import { ClusterConfigurationError } from '../../contract/errors/index.js';
import type { ResolvedClusterOptions } from '../../contract/options/index.js';
import { whenFree } from '../../contract/process/in-time.js';
import { BoundSocket } from './bound-socket.js';
import type { Listening } from './listening.interface.js';
import { SharedListening } from './shared-listening.js';
import { SlotListening } from './slot-listening.js';

type Options = Pick<ResolvedClusterOptions, 'address' | 'balancing' | 'workers'>;

/**
 * Binds the sockets that the workers listen on.
 *
 * @throws ClusterAddressError when an address is taken, forbidden or unknown.
 * @throws ClusterConfigurationError if this Node version cannot hold one socket for each slot.
 */
export function openListening(options: Options): Promise<Listening> {
  return whenFree(() => bind(options));
}

async function bind({ address, balancing, workers }: Options): Promise<Listening> {
  const socket = await BoundSocket.open(address);
  if (balancing === 'shared') {
    // Without a handle, workers listen through node:cluster. With SCHED_NONE they share one socket.
    if (socket.handle === undefined) cluster.schedulingPolicy = cluster.SCHED_NONE;
    return new SharedListening(balancing, socket);
  }
  if (balancing === 'round-robin') {
    cluster.schedulingPolicy = cluster.SCHED_RR;
    // Binding only had to show that the address is free, and which port the system chooses for port 0.
    return new SharedListening(balancing, socket.letGo());
  }
  if (socket.handle === undefined) {
    throw new ClusterConfigurationError(
      `balancing '${balancing}' needs net._createServerHandle of Node, which this one (${process.version}) does not have; set balancing to 'shared', which is the default`,
    );
  }
  const reusePort = balancing === 'reuse-port';
  // The first socket, bound without SO_REUSEPORT, only had to show that no other cluster has the port.
  socket.close();
  const listening = new SlotListening(balancing, (slot) =>
    socket.another(socket.port! + (reusePort ? 0 : slot), { reusePort }),
  );
  listening.reserve(workers);
  return listening;
}

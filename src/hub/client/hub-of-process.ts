import type { ClusterPort, SharedStatePort } from '../../contract/snapshot/index.js';
import { dialInProcess } from './in-process.js';
import { dialSocket } from './dial-socket.js';
import { HubClient } from './hub-client.js';

/** On `globalThis`, because two copies of this package are still one process, with one connection. */
const KEY = Symbol.for('nestjs-cluster.hub');

const holder = globalThis as { [KEY]?: HubClient | undefined };

type Link = ClusterPort & SharedStatePort;

/** @param link of this process; `undefined` where `bootstrap()` was not called: the hub is in the process then. */
export function hubOf(link: Link | undefined): HubClient {
  return (holder[KEY] ??= dial(link));
}

function dial(link: Link | undefined): HubClient {
  const find = link?.findHub();
  const hub = new HubClient(
    find === undefined
      ? dialInProcess
      : dialSocket(find, link!.identity.slot, (message) => link!.warn(message)),
  );
  link?.contributeMetrics(async (prefix) => {
    const { hubMetrics } = await import('./hub.metrics.js');
    return hubMetrics(prefix, link.identity.slot, hub);
  });
  return hub;
}

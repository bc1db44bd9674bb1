import { extension } from 'nestjs-cluster/extension';
import { dialInProcess, dialSocket } from './dial.js';
import { HubClient } from './hub-client.js';
import { hubMetrics } from './hub.metrics.js';

/** The name of this package, by which the primary finds the hub's thread. */
export const THREAD = '@nestjs-cluster/shared';

/** The client is stored on `globalThis`, so that two copies of this package share its connection. */
const KEY = Symbol.for('nestjs-cluster.hub');

const holder = globalThis as { [KEY]?: HubClient | undefined };

/** This process's client, connected on the first call. Without a primary, the hub runs in this process. */
export function hubOf(): HubClient {
  return (holder[KEY] ??= connect());
}

function connect(): HubClient {
  const cluster = extension();
  const find = cluster?.thread(THREAD);
  const slot = cluster?.identity.slot ?? 0;
  const warn = (message: string): void => cluster?.warn(message);
  const hub = new HubClient(find === undefined ? dialInProcess : dialSocket(find, slot, warn));
  cluster?.metrics((client) => hubMetrics(slot, hub, client));
  return hub;
}

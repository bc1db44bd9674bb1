import cluster from 'node:cluster';
import { extension } from 'nestjs-cluster/extension';
import { HubClient } from './hub-client.js';
import type { Dial, Line } from './hub-client.interface.js';

/** The client is on `globalThis`, so two copies of this package share it and its connection. */
const KEY = Symbol.for('nestjs-cluster.hub');

const holder = globalThis as { [KEY]?: HubClient | undefined };

/** The package whose thread the primary runs. */
export const THREAD = '@nestjs-cluster/shared';

const loadSocket = () => import('./dial-socket.js');
const loadInProcess = () => import('./in-process.js');

/**
 * Loads the code that connects this process to the hub. Providers call it in their constructors,
 * because the release's files may be removed before the first request needs the hub.
 */
export function loadHub(): void {
  const loading: Promise<unknown> = cluster.isWorker ? loadSocket() : loadInProcess();
  loading.catch(() => {}); // the first use reports the error
}

/** The client of this process. Without a primary the hub is in this process. */
export function hubOf(): HubClient {
  return (holder[KEY] ??= connect());
}

function connect(): HubClient {
  const link = extension();
  const find = link?.thread(THREAD);
  const warn = (message: string): void => link?.warn(message);
  const hub = new HubClient(
    dialLate(warn, async () => {
      if (find === undefined) return (await loadInProcess()).dialInProcess;
      return (await loadSocket()).dialSocket(find, link!.identity.slot, warn);
    }),
  );
  link?.metrics(async (client) => {
    const { hubMetrics } = await import('./hub.metrics.js');
    return hubMetrics(link.identity.slot, hub, client);
  });
  return hub;
}

/** A line that opens when its code is loaded. */
function dialLate(warn: (message: string) => void, load: () => Promise<Dial>): Dial {
  return (events) => {
    let line: Line | undefined;
    load().then(
      (dial) => (line = dial(events)),
      ({ message }: Error) => {
        warn(`there is no hub, because its client cannot be loaded: ${message}`);
        events.unavailable(message);
      },
    );
    return { send: (header, body) => line?.send(header, body) ?? false };
  };
}

import type { ClusterEventMap, ClusterEventName } from '../../../src/contract/log/events.js';
import { createEventLog } from '../../../src/contract/log/log.js';
import type { LogOptions } from '../../../src/contract/options/resolve.js';

/** Any event with its name. */
export type NamedEvent = {
  [N in ClusterEventName]: [name: N, event: ClusterEventMap[N]];
}[ClusterEventName];

export const WORKER = { slot: 2, pid: 4242, generation: 1 };

export const LISTENING: ClusterEventMap['listening'] = {
  url: 'http://127.0.0.1:3000',
  workers: 2,
  balancing: 'shared',
  ports: [],
  endpoints: [],
  adminUrl: null,
};

/** A worker that crashed, with what is different about it. */
export function died(about: Partial<ClusterEventMap['worker-died']> = {}) {
  const crash: ClusterEventMap['worker-died'] = {
    worker: WORKER,
    cause: 'crash',
    detail: 'exited with code 1',
    uptimeMs: 1,
    error: null,
    requests: [],
    blocked: null,
  };
  return { ...crash, ...about };
}

/** A worker that ended well, with what is different about it. */
export function stopped(about: Partial<ClusterEventMap['worker-stopped']> = {}) {
  const end: ClusterEventMap['worker-stopped'] = {
    worker: WORKER,
    cause: 'reload',
    drainMs: 1,
    destroyedConnections: 0,
    abortedRequests: 0,
    destroyedWebSockets: 0,
    problem: null,
  };
  return { ...end, ...about };
}

/** An event log, with the text that it has written to each stream. */
export function startLog(options: LogOptions, { isTTY = false } = {}) {
  const written = { out: '', err: '' };
  const streamTo = (name: 'out' | 'err') => ({
    isTTY,
    write: (text: string) => void (written[name] += text),
  });
  const emit = createEventLog(
    { format: 'text', level: 'info', write: undefined, ...options } as never,
    { out: streamTo('out'), err: streamTo('err') },
  );
  return { emit: (...[name, event]: NamedEvent) => emit(name, event as never), written };
}

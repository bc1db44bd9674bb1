import type { ClusterSnapshot, CollectedMetrics } from '../../../src/contract/snapshot/index.js';
import { encodeMetrics } from '../../../src/contract/snapshot/metrics-body.js';
import { type Later, MetricsRelay } from '../../../src/primary/metrics-relay.js';
import type { WorkerTable } from '../../../src/primary/worker-table.js';
import { PRIMARY } from './fake-cluster.js';
import type { FakeWorker } from './fake-worker.js';
import { counter } from './metric-json.js';

export const later: Later = (ms, action) => {
  const timer = setTimeout(action, ms);
  return () => clearTimeout(timer);
};

export const SNAPSHOT: ClusterSnapshot = {
  balancing: 'shared',
  ports: [],
  desired: 2,
  ready: 2,
  minReady: 1,
  generation: 0,
  degraded: 0,
  reloads: { completed: 0, aborted: 0, reverted: 0 },
  dismissed: [],
  workers: [],
  primary: PRIMARY,
};

/** A body that counts `n`. */
export const body = (n: number) => encodeMetrics([counter(n)]);

/** A relay and its workers; what the supervisor tells it of them. */
export function relayOf(...workers: FakeWorker[]) {
  const live = [...workers];
  const table = {
    get workers() {
      return live.map(({ handle }) => handle);
    },
    snapshot: () => SNAPSHOT,
  };
  const relay = new MetricsRelay(table as unknown as WorkerTable, later);
  return {
    relay,
    live,
    /** `worker` asks, and sends its own metrics with the question. */
    ask: (worker: FakeWorker, id: number): void =>
      relay.collectFor(worker.handle, id, body(id), performance.now()),
    /** `worker` answers `collect`. */
    answer: (worker: FakeWorker, text: string): void =>
      relay.store(worker.handle, text, performance.now()),
    /** The primary asks; each answer that it has had by then. */
    gather: (): CollectedMetrics[] => {
      const answers: CollectedMetrics[] = [];
      // Not awaited: an answer that is not there is what is to be seen.
      void relay.collect().then((collected) => answers.push(collected));
      return answers;
    },
    /** `worker` sends its metrics of its own accord. */
    push: (worker: FakeWorker, text: string): void =>
      relay.store(worker.handle, text, performance.now()),
    /** The process of `worker` ends. */
    die: (worker: FakeWorker): void => {
      live.splice(live.indexOf(worker), 1);
      worker.connected = false;
      worker.enter('exited');
      relay.retire(worker.handle);
    },
  };
}

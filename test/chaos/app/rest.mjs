import cluster from 'node:cluster';
import { renameSync, writeFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const countOf = (emitter) =>
  emitter.eventNames().reduce((sum, name) => sum + emitter.listenerCount(name), 0);

/** At SIGUSR2 the primary writes to a file what nobody sees from outside: its listeners and heap. */
export function tellAtRest(file) {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc');
  process.on('SIGUSR2', () => {
    const listeners = countOf(process) + countOf(cluster);
    const workerListeners = Object.values(cluster.workers)
      .map((worker) => countOf(worker) + countOf(worker.process))
      .reduce((most, count) => Math.max(most, count), 0);
    collectGarbage();
    const heapBytes = process.memoryUsage().heapUsed;
    writeFileSync(`${file}.new`, JSON.stringify({ listeners, workerListeners, heapBytes }));
    renameSync(`${file}.new`, file);
  });
}

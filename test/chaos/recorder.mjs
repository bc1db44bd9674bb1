import http from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { quantile } from '../bench/statistics.mjs';
import { descriptorsOf } from './process-table.mjs';

const SAMPLE_MS = 60_000;
const PROBE_PAUSE_MS = 50;

/** Records what a cluster uses and how fast it answers: a sample for each minute. */
export class Recorder {
  /** `{ minute, primary, workers, p50Ms, p99Ms, maxMs }` */
  samples = [];
  #cluster;
  #latencies = [];
  #timer;
  #stopped = false;

  constructor(cluster) {
    this.#cluster = cluster;
    // No sample can be taken of a cluster that has just ended: the run tells that itself.
    this.#timer = setInterval(() => void this.#take().catch(() => {}), SAMPLE_MS);
    void this.#probe();
  }

  stop() {
    this.#stopped = true;
    clearInterval(this.#timer);
  }

  async #take() {
    const latencies = this.#latencies;
    this.#latencies = [];
    const minute = this.samples.length + 1;
    const {
      listeners: _listeners,
      workerListeners: _own,
      ...primary
    } = await this.#cluster.sample();
    const report = await this.#cluster.report();
    this.samples.push({
      minute,
      primary,
      workers: (report?.workers ?? []).map(({ pid, residentMemoryBytes, heapUsedBytes }) => ({
        descriptors: countOf(pid),
        residentBytes: residentMemoryBytes,
        heapBytes: heapUsedBytes,
      })),
      p50Ms: quantile(latencies, 0.5),
      p99Ms: quantile(latencies, 0.99),
      maxMs: quantile(latencies, 1),
    });
  }

  /** Asks on a kept connection. Lost answers are the strict clients' matter. */
  async #probe() {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    while (!this.#stopped) {
      const began = performance.now();
      const answered = await this.#cluster.app('/whoami', agent).then(
        () => true,
        () => false,
      );
      if (answered) this.#latencies.push(performance.now() - began);
      await delay(PROBE_PAUSE_MS);
    }
    agent.destroy();
  }
}

function countOf(pid) {
  try {
    return descriptorsOf(pid).length;
  } catch {
    return undefined; // it has just ended
  }
}

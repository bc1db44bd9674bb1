// Runs in its own process, so that the load does not block the event loop of the command.
import type { EventEmitter } from 'node:events';
import { createHistogram, performance } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { LoadMessage, LoadReport, LoadRequest } from './load-protocol.js';

/** The used part of autocannon. */
interface Autocannon {
  (options: {
    readonly url: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly connections: number;
    /** The duration of the load, in seconds. */
    readonly duration: number;
    readonly setupClient: (client: EventEmitter) => void;
  }): EventEmitter & { stop(): void };
}

const MS_PER_SECOND = 1_000;
const US_PER_MS = 1_000;

/** Added to autocannon's own duration, so that it does not end before it is stopped here. */
const SPARE_SECONDS = 60;

const [path] = process.argv.slice(2);
const { default: autocannon } = (await import(pathToFileURL(path!).href)) as {
  default: Autocannon;
};

// The parent process is gone, so nobody would read the result.
process.once('disconnect', () => process.exit(0));
// Ctrl-C in a terminal also signals this process, but the parent process ends it.
process.on('SIGINT', () => {});
process.once('message', (request: LoadRequest) => {
  void load(request).then((report) => send({ type: 'done', report }));
});
send({ type: 'loaded' });

async function load(request: LoadRequest): Promise<LoadReport> {
  const { url, headers, connections, warmUpMs, measureMs } = request;
  const latenciesUs = createHistogram();
  const failures = new Map<string, number>();
  let measuring = false;
  let answered = 0;
  let answeredInAll = 0;
  const fail = (what: string) => {
    if (measuring) failures.set(what, (failures.get(what) ?? 0) + 1);
  };

  const instance = autocannon({
    url,
    headers,
    connections,
    duration: (warmUpMs + measureMs) / MS_PER_SECOND + SPARE_SECONDS,
    setupClient(client) {
      // The latency is measured here, because autocannon's latency is wrong (8.0 and 9.0): after
      // the server has closed a connection, as the balancing does, autocannon measures each later
      // answer of that client from the previous request.
      let sentAt = 0;
      client.on('request', () => (sentAt = performance.now()));
      client.on('response', (status: number) => {
        if (status < 200 || status > 399) return fail(String(status));
        answeredInAll += 1;
        if (!measuring) return;
        answered += 1;
        latenciesUs.record(Math.max(1, Math.round((performance.now() - sentAt) * US_PER_MS)));
      });
    },
  });
  instance.on('reqError', (error: Error) => fail(error.message));

  const loadedAt = performance.now();
  const cpuAtLoad = process.cpuUsage();
  await delay(warmUpMs);
  const from = performance.eventLoopUtilization();
  const startedAt = performance.now();
  measuring = true;
  await delay(measureMs);
  measuring = false;
  const seconds = (performance.now() - startedAt) / MS_PER_SECOND;
  const { utilization } = performance.eventLoopUtilization(from);
  const { user, system } = process.cpuUsage(cpuAtLoad);
  instance.stop();
  const percentile = (percent: number) => latenciesUs.percentile(percent) / US_PER_MS;
  return {
    requestsPerSecond: answered / seconds,
    p50Ms: percentile(50),
    p99Ms: percentile(99),
    answered,
    answeredInAll,
    failures: Object.fromEntries(failures),
    busyCores: (user + system) / US_PER_MS / (performance.now() - loadedAt),
    utilization,
  };
}

function send(message: LoadMessage): void {
  process.send!(message);
}

import type { EventEmitter } from 'node:events';
import { createHistogram, performance } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { resolveFromApp } from '../resolve-from-app.js';
import { ToolError } from '../output.js';

/** The used part of autocannon. */
export type Autocannon = (
  options: Omit<Load, 'seconds'> & {
    /** The duration of the load, in seconds. */
    readonly duration: number;
    readonly setupClient: (client: EventEmitter) => void;
  },
) => EventEmitter & { stop(): void };

/** The route to load, and the duration. */
export interface Load {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly connections: number;
  readonly seconds: number;
}

export interface LoadReport {
  /** The number of answers with 2xx or 3xx per second. */
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** The number of requests that got another status, or no answer. */
  readonly failed: number;
  /** The share of the time in which the event loop of this process was busy. */
  readonly generatorUtilization: number;
}

const US_PER_MS = 1_000;

/** The warm-up does not count. It takes this long to compile the code and to balance the connections. */
const WARM_UP_MS = 1_000;

/** Added to autocannon's own duration, so that it does not end before it is stopped here. */
const SPARE_SECONDS = 60;

/** @throws ToolError with the command that installs autocannon. */
export async function loadAutocannon(): Promise<Autocannon> {
  const file = resolveFromApp('autocannon');
  if (file === undefined) {
    throw new ToolError('tune needs autocannon; npm install --save-dev autocannon');
  }
  return ((await import(pathToFileURL(file).href)) as { default: Autocannon }).default;
}

/** Sends requests over `connections` without pause, until `over` aborts or `seconds` have been measured. */
export async function load(
  autocannon: Autocannon,
  { seconds, ...target }: Load,
  over: AbortSignal,
): Promise<LoadReport> {
  const latenciesUs = createHistogram();
  let measuring = false;
  let answered = 0;
  let failed = 0;
  const instance = autocannon({
    ...target,
    duration: seconds + SPARE_SECONDS,
    setupClient(client) {
      // Measured here, because autocannon's latency is wrong (8.0 and 9.0): after the server has
      // closed a connection, as the balancing does, it measures from the request before.
      let sentAt = 0;
      client.on('request', () => (sentAt = performance.now()));
      client.on('response', (status: number) => {
        if (!measuring) return;
        if (status < 200 || status > 399) return void (failed += 1);
        answered += 1;
        latenciesUs.record(Math.max(1, Math.round((performance.now() - sentAt) * US_PER_MS)));
      });
    },
  });
  instance.on('reqError', () => void (measuring && (failed += 1)));
  try {
    await delay(WARM_UP_MS, undefined, { signal: over });
    const from = performance.eventLoopUtilization();
    const startedAt = performance.now();
    measuring = true;
    await delay(seconds * 1_000, undefined, { signal: over });
    measuring = false;
    return {
      requestsPerSecond: (answered / (performance.now() - startedAt)) * 1_000,
      p50Ms: latenciesUs.percentile(50) / US_PER_MS,
      p99Ms: latenciesUs.percentile(99) / US_PER_MS,
      failed,
      generatorUtilization: performance.eventLoopUtilization(from).utilization,
    };
  } finally {
    instance.stop();
  }
}

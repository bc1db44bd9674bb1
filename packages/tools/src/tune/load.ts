import type { EventEmitter } from 'node:events';
import { createHistogram, performance } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { resolveFromApp } from '../resolve-from-app.js';
import { ToolError } from '../output.js';

/** The part of autocannon that is used here. */
export type Autocannon = (
  options: Omit<Load, 'seconds'> & {
    /** The duration of the load, in seconds. */
    readonly duration: number;
    readonly setupClient: (client: EventEmitter) => void;
  },
) => EventEmitter & { stop(): void };

/** The route for the load, and the duration. */
export interface Load {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly connections: number;
  readonly seconds: number;
}

export interface LoadReport {
  /** Answers with 2xx or 3xx, per second. */
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Number of requests that got another status or no answer. */
  readonly failed: number;
  /** The utilization of this process's event loop, 0..1. */
  readonly generatorUtilization: number;
}

const US_PER_MS = 1_000;

/** An unmeasured warm-up, in which code is compiled and connections are balanced. */
const WARM_UP_MS = 1_000;

/** Added to autocannon's own duration, so that autocannon does not end before it is stopped here. */
const SPARE_SECONDS = 60;

/** @throws ToolError with the install command if autocannon is not installed. */
export async function loadAutocannon(): Promise<Autocannon> {
  const file = resolveFromApp('autocannon');
  if (file === undefined) {
    throw new ToolError('tune needs autocannon; run npm install --save-dev autocannon');
  }
  return ((await import(pathToFileURL(file).href)) as { default: Autocannon }).default;
}

/** Sends requests continuously over `connections`, until `over` aborts or `seconds` have been measured. */
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
      // Measured here, because the latency of autocannon 8.0 and 9.0 is wrong: it counts from the
      // previous request after the server has closed a connection, for example to rebalance.
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

import type { EventEmitter } from 'node:events';
import { createRequire } from 'node:module';
import { createHistogram, performance } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { ToolError } from '../output.js';

/** The used part of autocannon. */
export type Autocannon = (options: {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly connections: number;
  /** The duration of the load, in seconds. */
  readonly duration: number;
  readonly setupClient: (client: EventEmitter) => void;
}) => EventEmitter & { stop(): void };

export interface LoadReport {
  /** The number of answers with 2xx or 3xx per second. */
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** The number of requests that got another status, or no answer. */
  readonly failed: number;
  /** The share of the time in which the event loop of this process was busy. */
  readonly utilization: number;
}

const US_PER_MS = 1_000;

/** Added to autocannon's own duration, so that it does not end before it is stopped here. */
const SPARE_SECONDS = 60;

/**
 * Loads autocannon from the project in the working directory, or from next to this package.
 *
 * @throws ToolError with the command that installs it.
 */
export async function loadAutocannon(): Promise<Autocannon> {
  for (const from of [`${process.cwd()}/_`, import.meta.url]) {
    try {
      const { href } = pathToFileURL(createRequire(from).resolve('autocannon'));
      return ((await import(href)) as { default: Autocannon }).default;
    } catch {
      // not there
    }
  }
  throw new ToolError('tune makes its load with autocannon; npm install --save-dev autocannon');
}

/** Sends requests over `connections` without pause, first for `warmUpMs` that do not count. */
export async function load(
  autocannon: Autocannon,
  request: {
    readonly url: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly connections: number;
    readonly warmUpMs: number;
    readonly measureMs: number;
    readonly over: AbortSignal;
  },
): Promise<LoadReport> {
  const { url, headers, connections, warmUpMs, measureMs, over } = request;
  const latenciesUs = createHistogram();
  let measuring = false;
  let answered = 0;
  let failed = 0;
  const instance = autocannon({
    url,
    headers,
    connections,
    duration: (warmUpMs + measureMs) / 1_000 + SPARE_SECONDS,
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
    await delay(warmUpMs, undefined, { signal: over });
    const from = performance.eventLoopUtilization();
    const startedAt = performance.now();
    measuring = true;
    await delay(measureMs, undefined, { signal: over });
    measuring = false;
    const percentile = (percent: number) => latenciesUs.percentile(percent) / US_PER_MS;
    return {
      requestsPerSecond: (answered / (performance.now() - startedAt)) * 1_000,
      p50Ms: percentile(50),
      p99Ms: percentile(99),
      failed,
      utilization: performance.eventLoopUtilization(from).utilization,
    };
  } finally {
    instance.stop();
  }
}

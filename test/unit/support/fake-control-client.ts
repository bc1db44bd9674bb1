import { PassThrough } from 'node:stream';
import { vi } from 'vitest';
import type { Client } from '../../../src/tools/dashboard/cluster-feed.js';
import { clusterReport } from '../../../src/control/cluster-status.js';
import type { Sample, StreamedEvent } from '../../../src/control/event-stream.js';
import { SNAPSHOT } from './fake-relay.js';

export const SAMPLE: Sample = {
  at: '2026-01-01T00:00:00.000Z',
  cluster: clusterReport(SNAPSHOT),
  primary: null,
};

export const STATUS = {
  name: 'shop',
  pid: 4711,
  version: '1.0.0',
  node: '24.0.0',
  startedAt: '2026-01-01T00:00:00.000Z',
  options: { port: 0, host: null, admin: null },
  cluster: SAMPLE.cluster,
};

export const logged = (text: string): StreamedEvent => ({
  at: '2026-01-01T00:00:00.000Z',
  name: 'warning',
  level: 'warn',
  text,
  event: { message: text },
});

/** A cluster as the command line's client would show it, told by hand. */
export class FakeControlClient implements Client {
  readonly post = vi.fn(async (_path: string, _body?: object) => ({})) as unknown as Client['post'];
  readonly #stream = new PassThrough({ objectMode: true });

  constructor(private readonly status: object = STATUS) {}

  async get<T>(): Promise<T> {
    return this.status as T;
  }

  async events(): ReturnType<Client['events']> {
    return this.#stream as unknown as Awaited<ReturnType<Client['events']>>;
  }

  sample(sample: Sample = SAMPLE): void {
    this.#stream.write({ type: 'sample', data: sample });
  }

  log(text: string): void {
    this.#stream.write({ type: 'log', data: logged(text) });
  }

  end(): void {
    this.#stream.end();
  }
}

import type { ClusterOptions } from 'nestjs-cluster';
import { behaviour } from '../../../../test/support/behaviour.js';
import { ClusterProcess } from '../../../../test/support/cluster-process.js';

/** The servers in which a test's apps have their queues, and in which they note their runs. */
export interface QueuePlaces {
  readonly redis: { readonly port: number };
  readonly effects: { readonly port: number };
}

export interface QueueAppOptions {
  /** Options of ClusterQueueModule. */
  readonly queues?: Readonly<Record<string, unknown>>;
  readonly options?: ClusterOptions;
  readonly env?: Readonly<Record<string, string>>;
  readonly execArgv?: readonly string[];
}

/** An app's response. */
export interface Answer {
  readonly status: number;
  readonly body: unknown;
}

/** An app of `test/fixtures/behaviours/queues.mjs`: web, consumer or both. */
export class QueueApp {
  private constructor(readonly cluster: ClusterProcess) {}

  static async start(
    { redis, effects }: QueuePlaces,
    { queues = {}, options = {}, env = {}, execArgv = [] }: QueueAppOptions = {},
  ): Promise<QueueApp> {
    const cluster = await ClusterProcess.start({
      execArgv,
      options: { workers: 1, ...options },
      env: {
        ...behaviour('queues'),
        TEST_EFFECTS: String(effects.port),
        TEST_QUEUES: JSON.stringify({
          connection: { host: '127.0.0.1', port: redis.port },
          ...queues,
        }),
        ...env,
      },
    });
    return new QueueApp(cluster);
  }

  /** Calls a method with a queue. */
  call(method: string, args: readonly unknown[], signal?: AbortSignal): Promise<Answer> {
    return this.post(`call/${method}`, args, signal);
  }

  async post(path: string, body: unknown, signal: AbortSignal | null = null): Promise<Answer> {
    const response = await fetch(`${this.cluster.url}/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal,
    });
    return this.#read(response);
  }

  async get(path: string): Promise<Answer> {
    return this.#read(await fetch(`${this.cluster.url}/${path}`));
  }

  /** The value of a metric with these labels. */
  async metric(series: string): Promise<number> {
    const page = await (await fetch(`${this.cluster.url}/metrics`)).text();
    const line = page.split('\n').find((each) => each.startsWith(`${series} `));
    return Number(line?.split(' ')[1] ?? NaN);
  }

  /** Jobs in hand. */
  async running(): Promise<number> {
    const { body } = await this.get('health');
    return (body as { details: { queue: { running: number } } }).details.queue.running;
  }

  async #read(response: Response): Promise<Answer> {
    const text = await response.text();
    try {
      return { status: response.status, body: JSON.parse(text) as unknown };
    } catch {
      return { status: response.status, body: text };
    }
  }
}

import type { ClusterSnapshot, ReloadResult } from 'nestjs-cluster';
import { runtimeBehaviour } from './behaviour.js';
import type { ClusterProcess } from './cluster-process.js';
import { request } from './http-client.js';
import { openDescriptorsOf } from './processes.js';

/** The environment that lets a test call the runtime of the primary. */
export const CONTROLLED = runtimeBehaviour('messages#controlled');

/** An error as it crosses a process boundary. */
export interface Refusal {
  readonly error: { readonly name: string; readonly code: string; readonly message: string };
}

/** Calls the runtime of a primary that was started with {@link CONTROLLED}. */
export class PrimaryControl {
  private constructor(
    private readonly url: string,
    private readonly pid: number,
  ) {}

  static async of(cluster: ClusterProcess): Promise<PrimaryControl> {
    const url = () => /^control (\S+)$/m.exec(cluster.output)?.[1];
    await cluster.until('control of the primary', () => url() !== undefined);
    return new PrimaryControl(url()!, cluster.pid);
  }

  reload(): Promise<ReloadResult> {
    return this.#call('reload');
  }

  /** @param workers any JSON value, also one that is not a number. */
  scale<T = ClusterSnapshot>(workers: unknown): Promise<T> {
    return this.#call(`scale/${encodeURIComponent(JSON.stringify(workers))}`);
  }

  snapshot(): Promise<ClusterSnapshot> {
    return this.#call('snapshot');
  }

  /** Counts of listeners on the primary's process and cluster, and of node:cluster's workers. */
  listeners(): Promise<Readonly<Record<'process' | 'cluster' | 'workers', number>>> {
    return this.#call('listeners');
  }

  /** Descriptors that the primary holds. */
  get descriptors(): number {
    return openDescriptorsOf(this.pid);
  }

  async #call<T>(path: string): Promise<T> {
    const { outcome, body } = await request(this.url, `/${path}`, { timeoutMs: 60_000 });
    if (outcome !== 'ok') throw new Error(`${path}: ${outcome}`);
    return JSON.parse(body) as T;
  }
}

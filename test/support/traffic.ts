import http from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { request } from './http-client.js';
import { Waiters } from './waiters.js';

/** 16 KB of JSON. */
const BODY = JSON.stringify({ text: 'x'.repeat(16 * 1024) });
const POST = { method: 'POST', headers: { 'content-type': 'application/json' }, body: BODY };

/** Else the clients would have the machine, and a worker that boots under them would take for ever. */
const PAUSE_MS = 20;

type Kind = 'keep-alive GET' | 'new connection' | 'keep-alive POST' | 'new POST';

/** A request that was not answered as it should have been. */
export interface Loss {
  readonly kind: Kind;
  readonly outcome: string;
  readonly status: number | undefined;
}

/**
 * Clients that ask on and on and never ask twice: on connections they keep,
 * on a new one each time, and with bodies of 16 KB.
 */
export class Traffic {
  served = 0;
  readonly lost: Loss[] = [];
  /** Generations that have answered, and the workers of each. */
  readonly seen = new Map<number, Set<number>>();
  readonly #clients: Promise<void>[];
  readonly #waiters = new Waiters();
  #stopped = false;

  /** @param each how many clients of each of the four kinds. */
  constructor(base: string, each = 2) {
    const kinds = ['keep-alive GET', 'new connection', 'keep-alive POST', 'new POST'] as const;
    this.#clients = kinds.flatMap((kind) =>
      Array.from({ length: each }, () => this.#client(base, kind)),
    );
  }

  /** Resolves once `holds`; it is looked at after each answer. */
  until(what: string, holds: () => boolean): Promise<void> {
    return this.#waiters.until({
      holds,
      late: () => `no ${what}; lost: ${JSON.stringify(this.lost)}`,
    });
  }

  /** Resolves once `count` more were answered. */
  serves(count: number): Promise<void> {
    const goal = this.served + count;
    return this.until(`${count} more answers`, () => this.served >= goal);
  }

  /** @returns what was lost. */
  async stop(): Promise<readonly Loss[]> {
    this.#stopped = true;
    await Promise.all(this.#clients);
    return this.lost;
  }

  async #client(base: string, kind: Kind): Promise<void> {
    const keeps = kind.startsWith('keep-alive');
    const posts = kind.endsWith('POST');
    const agent = keeps && new http.Agent({ keepAlive: true, maxSockets: 1 });
    while (!this.#stopped) {
      const { outcome, status, body } = await (posts
        ? request(base, '/echo', { ...POST, ...(agent && { agent }) })
        : request(base, '/whoami', agent ? { agent } : {}));
      // Nest answers a POST with 201.
      if (posts && status === 201 && body === BODY) this.served += 1;
      else if (!posts && outcome === 'ok') {
        this.served += 1;
        const { generation, pid } = JSON.parse(body) as { generation: number; pid: number };
        this.seen.set(generation, (this.seen.get(generation) ?? new Set()).add(pid));
      } else this.lost.push({ kind, outcome, status });
      this.#waiters.look();
      await delay(PAUSE_MS);
    }
    if (agent) agent.destroy();
  }
}

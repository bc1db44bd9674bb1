import http from 'node:http';
import { Clients } from './clients.js';
import { type Answer, request } from './http-client.js';

/** 16 KB of JSON. */
const BODY = JSON.stringify({ text: 'x'.repeat(16 * 1024) });
const POST = { method: 'POST', headers: { 'content-type': 'application/json' }, body: BODY };

const PAUSE_MS = 20;

const KINDS = ['keep-alive GET', 'new connection', 'keep-alive POST', 'new POST'] as const;
type Kind = (typeof KINDS)[number];

/** Clients on connections they keep, on a new one each time, and with bodies of 16 KB. */
export class Traffic extends Clients {
  /** Requests that were not answered as they should have been. */
  readonly lost: (Pick<Answer, 'outcome' | 'status'> & { readonly kind: Kind })[] = [];
  /** Generations that have answered, and the workers of each. */
  readonly seen = new Map<number, Set<number>>();

  /** @param each how many clients of each of the four kinds. */
  constructor(base: string, each = 2) {
    const clients = KINDS.flatMap((kind) => Array.from({ length: each }, () => kind));
    super(
      clients.map((kind) => {
        const agent = kind.startsWith('keep-alive') && new http.Agent({ keepAlive: true });
        return () => this.#ask(base, kind, agent);
      }),
      PAUSE_MS,
    );
  }

  /** @returns what was lost. */
  override async stop() {
    await super.stop();
    return this.lost;
  }

  async #ask(base: string, kind: Kind, agent: http.Agent | false): Promise<boolean> {
    const posts = kind.endsWith('POST');
    const options = { ...(posts && POST), ...(agent && { agent }) };
    const { outcome, status, body } = await request(base, posts ? '/echo' : '/whoami', options);
    // Nest answers a POST with 201.
    if (posts && status === 201 && body === BODY) return true;
    if (posts || outcome !== 'ok') {
      this.lost.push({ kind, outcome, status });
      return false;
    }
    const { generation, pid } = JSON.parse(body) as { generation: number; pid: number };
    this.seen.set(generation, (this.seen.get(generation) ?? new Set()).add(pid));
    return true;
  }
}

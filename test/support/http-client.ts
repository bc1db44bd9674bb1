import http from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { PATIENCE_MS } from './patience.js';
import { Waiters } from './waiters.js';

/** How a request ended, as its client sees it. */
export type Outcome = 'ok' | 'bad-status' | 'reset' | 'refused' | 'timeout';

export interface Answer {
  readonly outcome: Outcome;
  readonly status: number | undefined;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
}

export interface RequestOptions {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Default: a new connection for this request. */
  readonly agent?: http.Agent;
  readonly timeoutMs?: number;
}

/** Sends one request to a URL, or to `unix:/path` + `path`. Never rejects: the outcome tells. */
export function request(base: string, path: string, options: RequestOptions = {}): Promise<Answer> {
  const { method = 'GET', headers = {}, body, agent = false, timeoutMs = PATIENCE_MS } = options;
  const where = base.startsWith('unix:')
    ? { socketPath: base.slice('unix:'.length) }
    : { hostname: new URL(base).hostname.replace(/^\[|\]$/g, ''), port: new URL(base).port };
  return new Promise((resolve) => {
    const settle = (outcome: Outcome, response?: http.IncomingMessage, text = ''): void => {
      clearTimeout(timer);
      resolve({
        outcome,
        status: response?.statusCode,
        headers: response?.headers ?? {},
        body: text,
      });
    };
    const req = http.request({ ...where, path, method, headers, agent }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => (text += chunk));
      response.on('end', () =>
        settle(response.statusCode === 200 ? 'ok' : 'bad-status', response, text),
      );
      response.on('error', () => settle('reset', response, text));
    });
    const timer = setTimeout(() => {
      settle('timeout');
      req.destroy();
    }, timeoutMs);
    req.on('error', (error: NodeJS.ErrnoException) =>
      settle(error.code === 'ECONNREFUSED' || error.code === 'ENOENT' ? 'refused' : 'reset'),
    );
    req.end(body);
  });
}

/** The same, with the body of the answer as JSON. */
// A test asserts on what it gets: `unknown` would only make it cast.
// oxlint-disable-next-line typescript/no-explicit-any
export async function getJson<T = any>(
  base: string,
  path: string,
): Promise<{ status: number; body: T }> {
  const { status, outcome, body } = await request(base, path);
  if (status === undefined) throw new Error(`${path}: ${outcome}`);
  return { status, body: JSON.parse(body) as T };
}

/** Clients that ask until stopped, without a pause unless told, and what became of each request. */
export class Load {
  readonly outcomes: Record<Outcome, number> = {
    ok: 0,
    'bad-status': 0,
    reset: 0,
    refused: 0,
    timeout: 0,
  };
  readonly #clients: Promise<void>[];
  readonly #waiters = new Waiters();
  #stopped = false;

  /**
   * @param keepAlive one connection a client; else one a request.
   * @param pauseMs after each answer: without one the clients have the machine, and who boots waits.
   */
  constructor(
    base: string,
    path: string,
    {
      clients = 4,
      keepAlive = false,
      pauseMs = 0,
      ...options
    }: RequestOptions & { clients?: number; keepAlive?: boolean; pauseMs?: number } = {},
  ) {
    this.#clients = Array.from({ length: clients }, async () => {
      const agent = keepAlive ? new http.Agent({ keepAlive: true, maxSockets: 1 }) : undefined;
      while (!this.#stopped) {
        const { outcome } = await request(base, path, { ...options, ...(agent && { agent }) });
        this.outcomes[outcome] += 1;
        this.#waiters.look();
        if (pauseMs > 0) await delay(pauseMs);
      }
      agent?.destroy();
    });
  }

  get failures(): number {
    const { ok: _ok, ...failed } = this.outcomes;
    return Object.values(failed).reduce((sum, count) => sum + count, 0);
  }

  /** Resolves once `count` more requests were answered well. */
  async served(count: number): Promise<void> {
    const goal = this.outcomes.ok + count;
    await this.#waiters.until({
      holds: () => this.outcomes.ok >= goal,
      late: () => `not served: ${JSON.stringify(this.outcomes)}`,
    });
  }

  async stop(): Promise<Record<Outcome, number>> {
    this.#stopped = true;
    await Promise.all(this.#clients);
    return this.outcomes;
  }
}

import http from 'node:http';
import { Clients } from './clients.js';
import { PATIENCE_MS } from './patience.js';

/** How a request ended, as its client sees it. */
export type Outcome = 'ok' | 'bad-status' | 'reset' | 'refused' | 'timeout';

export interface Answer {
  readonly outcome: Outcome;
  readonly status: number | undefined;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
  /** Port of the client; `undefined` where it was never connected. */
  readonly clientPort: number | undefined;
  readonly tookMs: number;
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
  const startedAt = performance.now();
  let clientPort: number | undefined;
  return new Promise((resolve) => {
    const settle = (outcome: Outcome, response?: http.IncomingMessage, text = ''): void => {
      clearTimeout(timer);
      resolve({
        outcome,
        status: response?.statusCode,
        headers: response?.headers ?? {},
        body: text,
        clientPort,
        tookMs: performance.now() - startedAt,
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
    req.on('socket', (socket) => {
      if (socket.connecting) socket.once('connect', () => (clientPort = socket.localPort));
    });
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

/** Clients of one path, and what became of each request. */
export class Load extends Clients {
  readonly outcomes: Record<Outcome, number> = {
    ok: 0,
    'bad-status': 0,
    reset: 0,
    refused: 0,
    timeout: 0,
  };

  /** @param keepAlive one connection a client; else one a request. */
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
    const asks = Array.from({ length: clients }, () => {
      const agent = keepAlive && new http.Agent({ keepAlive: true, maxSockets: 1 });
      return async () => {
        const { outcome } = await request(base, path, { ...options, ...(agent && { agent }) });
        this.outcomes[outcome] += 1;
        return outcome === 'ok';
      };
    });
    super(asks, pauseMs);
  }

  override async stop(): Promise<Record<Outcome, number>> {
    await super.stop();
    return this.outcomes;
  }
}

import type { IncomingMessage } from 'node:http';

/** Why a request is not answered. */
export interface Refusal {
  readonly status: number;
  readonly message: string;
}

const METHODS: ReadonlySet<string | undefined> = new Set(['GET', 'HEAD']);

/**
 * Refuses what a page in a browser on this machine could be made to ask. Such a
 * page reaches loopback by a name of its own that resolves there (DNS rebinding),
 * or by a request across sites.
 */
export function refusalOf(
  { method, headers }: Pick<IncomingMessage, 'method' | 'headers'>,
  host: string,
  port: number,
): Refusal | undefined {
  const names = new Set([
    '127.0.0.1',
    'localhost',
    '[::1]',
    host.includes(':') ? `[${host}]` : host,
  ]);
  const allowed = new Set([...names].map((name) => `${name}:${port}`));
  // The port of http is left out.
  if (port === 80) for (const name of names) allowed.add(name);
  const asked = headers.host?.toLowerCase();
  if (asked === undefined || !allowed.has(asked)) {
    return { status: 421, message: 'misdirected request: the Host header names another server' };
  }
  const { origin } = headers;
  if (origin !== undefined && origin !== `http://${asked}`) {
    return { status: 403, message: 'forbidden: the request comes from another site' };
  }
  if (headers['sec-fetch-site'] === 'cross-site') {
    return { status: 403, message: 'forbidden: the request comes from another site' };
  }
  if (!METHODS.has(method)) return { status: 405, message: 'only GET and HEAD' };
  return undefined;
}

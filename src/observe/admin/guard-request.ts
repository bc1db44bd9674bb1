import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { isLoopback } from '../../contract/options/loopback.js';

/** Why a request is not answered. */
export interface Refusal {
  readonly status: number;
  readonly message: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const METHODS: ReadonlySet<string | undefined> = new Set(['GET', 'HEAD']);

/**
 * Refuses requests that a malicious web page could send from a browser on this machine. Such a page
 * reaches loopback by its own host name, which resolves to loopback (DNS rebinding), or by a
 * cross-site request. If a token is required, any host name is accepted: the page has no token.
 */
export function refusalOf(
  { method, headers }: Pick<IncomingMessage, 'method' | 'headers'>,
  host: string,
  port: number,
  wantsToken = false,
): Refusal | undefined {
  const asked = headers.host?.toLowerCase();
  if (asked === undefined || !(wantsToken || leadsHere(asked, host, port))) {
    return { status: 421, message: 'misdirected request: the Host header names another server' };
  }
  const { origin } = headers;
  const isForeign = origin !== undefined && origin !== `http://${asked}`;
  if (isForeign || headers['sec-fetch-site'] === 'cross-site') {
    return { status: 403, message: 'forbidden: the request comes from another site' };
  }
  if (!METHODS.has(method)) return { status: 405, message: 'only GET and HEAD' };
  return undefined;
}

/** Whether the requested host names this listener, so that it cannot be the host name of a foreign page. */
function leadsHere(asked: string, host: string, port: number): boolean {
  if (!isLoopback(host)) return isAddressOrLabel(asked);
  const names = new Set([
    '127.0.0.1',
    'localhost',
    '[::1]',
    host.includes(':') ? `[${host}]` : host,
  ]);
  const allowed = new Set([...names].map((name) => `${name}:${port}`));
  // Clients leave the default port of HTTP out.
  if (port === 80) for (const name of names) allowed.add(name);
  return allowed.has(asked);
}

/**
 * Accepts an IP address, such as a pod's, with any port, because a proxy may use another port. Also
 * accepts a name without dots, such as a service in the same namespace: it cannot be a public
 * domain.
 */
function isAddressOrLabel(asked: string): boolean {
  const name = asked.replace(/:\d+$/, '').replace(/^\[(.+)\]$/, '$1');
  return isIP(name) !== 0 || /^[a-z\d]([a-z\d-]*[a-z\d])?$/.test(name);
}

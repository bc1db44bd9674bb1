import type { IncomingMessage } from 'node:http';
import { Refusal } from '../../control/route.js';

/** The allowed hosts. Other names are refused, as they may resolve to loopback (DNS rebinding). */
const HOSTS = ['127.0.0.1', 'localhost'];

const DEFAULT_PORT = 80;

/**
 * Refuses requests that come from another page in the browser, or that name another host.
 *
 * @throws Refusal
 */
export function guardBrowser(
  { method, headers }: Pick<IncomingMessage, 'method' | 'headers'>,
  port: number,
): void {
  const host = headers.host ?? '';
  if (!hostsOf(port).includes(host)) {
    throw new Refusal(421, 'MISDIRECTED', 'misdirected request: the Host header is not ours');
  }
  if (headers.origin !== undefined && headers.origin !== `http://${host}`) {
    throw new Refusal(403, 'FOREIGN_ORIGIN', 'forbidden: the request comes from another page');
  }
  // 'same-site' is refused, because a page from another port of this host is same-site and has our cookie.
  if (!['same-origin', 'none', undefined].includes(headers['sec-fetch-site'] as string)) {
    throw new Refusal(
      403,
      'FOREIGN_SITE',
      'forbidden: another page has led here; copy the link into the address bar',
    );
  }
  if (method === 'POST' && headers['content-type'] !== 'application/json') {
    throw new Refusal(415, 'NOT_JSON', 'a POST needs the header "Content-Type: application/json"');
  }
}

function hostsOf(port: number): readonly string[] {
  const named = HOSTS.map((host) => `${host}:${port}`);
  // Browsers leave out the default port.
  return port === DEFAULT_PORT ? [...named, ...HOSTS] : named;
}

/** The headers of every answer. They allow only our own files, and no text as markup. */
export const SECURITY_HEADERS = {
  'Content-Security-Policy': [
    "default-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; '),
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Cache-Control': 'no-store',
} as const;

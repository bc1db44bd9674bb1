import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** Why a request is refused. */
export class Refusal extends Error {
  /** @param code is for programs, and `message` is for people. */
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

/** A change needs this header and the cookie, because browsers send the cookie to all ports of this host. */
const TOKEN_HEADER = 'x-dashboard-token';

type Request = Pick<IncomingMessage, 'method' | 'headers'>;

/** Accepts requests only from a browser that has opened the printed link. */
export class Guard {
  /** The token of the link, in the URL's fragment, which browsers never send. */
  readonly token = newToken();
  readonly #cookie = newToken();
  port = 0;

  /** @throws Refusal if another page of the browser has sent the request, or it names another host. */
  mustBeOurs({ method, headers }: Request): void {
    const host = headers.host ?? '';
    // A name that is not listed may resolve to loopback (DNS rebinding). Browsers leave out port 80.
    const hosts = ['127.0.0.1', 'localhost'].map((name) =>
      this.port === 80 ? name : `${name}:${this.port}`,
    );
    if (!hosts.includes(host)) {
      throw new Refusal(421, 'MISDIRECTED', 'misdirected request: the Host header is not ours');
    }
    // 'same-site' is refused, because a page from another port of this host is same-site and has our cookie.
    const isForeign =
      (headers.origin ?? `http://${host}`) !== `http://${host}` ||
      !['same-origin', 'none', undefined].includes(headers['sec-fetch-site'] as string);
    if (isForeign) {
      const remedy = 'copy the link into the address bar';
      throw new Refusal(403, 'FOREIGN_SITE', `forbidden: another page has led here; ${remedy}`);
    }
    if (method === 'POST' && headers['content-type'] !== 'application/json') {
      throw new Refusal(
        415,
        'NOT_JSON',
        'a POST needs the header "Content-Type: application/json"',
      );
    }
  }

  /** Exchanges the link's token for a cookie. @throws Refusal */
  open(token: unknown): string {
    if (!isSame(token, this.token)) throw new Refusal(403, 'WRONG_LINK', 'this link is wrong');
    return `${this.#cookieName}=${this.#cookie}; Path=/api; HttpOnly; SameSite=Strict`;
  }

  /** @throws Refusal unless the request has the cookie. */
  mustView({ headers }: Request): void {
    const wanted = `${this.#cookieName}=`;
    const cookies = (headers.cookie ?? '').split(';').map((each) => each.trim());
    const sent = cookies.filter((each) => each.startsWith(wanted));
    if (sent.some((each) => isSame(each.slice(wanted.length), this.#cookie))) return;
    throw new Refusal(401, 'NO_SESSION', 'open the link that the command has printed');
  }

  /** @throws Refusal unless the request has the header, which only the page itself can send. */
  mustChange({ headers }: Request): void {
    if (isSame(headers[TOKEN_HEADER], this.token)) return;
    throw new Refusal(403, 'NO_TOKEN', `a change needs the header ${TOKEN_HEADER}`);
  }

  /** All ports of a host share their cookies, so the cookie's name contains the port. */
  get #cookieName(): string {
    return `nestjs-cluster-${this.port}`;
  }
}

function newToken(): string {
  return randomBytes(32).toString('base64url');
}

function isSame(given: unknown, expected: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return typeof given === 'string' && timingSafeEqual(digest(given), digest(expected));
}

/** The headers of every answer. They allow only our own files, and no text as markup. */
export const SECURITY_HEADERS = {
  'Content-Security-Policy':
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Cache-Control': 'no-store',
} as const;

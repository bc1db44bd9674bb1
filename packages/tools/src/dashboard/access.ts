import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { Refusal } from '../../control/route.js';

const TOKEN_BYTES = 32;

/** A change needs this header and the cookie, because browsers send the cookie to all ports of this host. */
export const TOKEN_HEADER = 'x-dashboard-token';

type Headers = Pick<IncomingMessage, 'headers'>;

/** Accepts requests only from the browser that has opened the printed link. */
export class Access {
  readonly #cookie = newToken();
  readonly #header = newToken();
  #link: string | undefined;

  /** Makes the token of a new link. The token of the previous link becomes invalid. */
  newLink(): string {
    this.#link = newToken();
    return this.#link;
  }

  /**
   * Accepts the token of a link, which then becomes invalid.
   *
   * @returns the cookie and the header that the browser has to send from now on.
   * @throws Refusal
   */
  exchange(token: unknown, port: number): { readonly cookie: string; readonly header: string } {
    const expected = this.#link;
    if (expected === undefined || !isSame(token, expected)) {
      throw new Refusal(403, 'LINK_USED', 'this link is wrong, or has been used before');
    }
    this.#link = undefined;
    // All ports of a host share their cookies, so the cookie's name contains the port.
    const cookie = `${cookieName(port)}=${this.#cookie}; Path=/api; HttpOnly; SameSite=Strict`;
    return { cookie, header: this.#header };
  }

  /** @throws Refusal unless the request has the cookie. */
  mustView({ headers }: Headers, port: number): void {
    const wanted = `${cookieName(port)}=`;
    const cookies = (headers.cookie ?? '').split(';').map((each) => each.trim());
    const sent = cookies.filter((each) => each.startsWith(wanted));
    if (sent.some((each) => isSame(each.slice(wanted.length), this.#cookie))) return;
    throw new Refusal(401, 'NO_SESSION', 'open the link that the command has printed');
  }

  /** @throws Refusal unless the request has the header, which only the page itself can send. */
  mustChange({ headers }: Headers): void {
    if (isSame(headers[TOKEN_HEADER], this.#header)) return;
    throw new Refusal(403, 'NO_TOKEN', `a change needs the header ${TOKEN_HEADER}`);
  }
}

function newToken(): string {
  return randomBytes(TOKEN_BYTES).toString('base64url');
}

function cookieName(port: number): string {
  return `nestjs-cluster-${port}`;
}

function isSame(given: unknown, expected: string): boolean {
  return typeof given === 'string' && timingSafeEqual(digest(given), digest(expected));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

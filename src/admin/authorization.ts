import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Refusal } from './guard-request.js';

/** Wrong tokens that an address may send in a minute; then it is not listened to for the rest of it. */
export const MAX_WRONG_TOKENS = 10;
const WINDOW_MS = 60_000;

/** Addresses that are remembered; the oldest gives way. */
const MAX_ADDRESSES = 1_000;

const CHALLENGE = 'Bearer realm="nestjs-cluster"';

interface Guesses {
  count: number;
  /** Monotonic ms. */
  readonly until: number;
}

/** Of a text; it is what is compared, so that the time says nothing of the text or its length. */
export function hashOf(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

/** Lets in who sends the token, as `Authorization: Bearer …`. */
export class Authorization {
  readonly #guesses = new Map<string, Guesses>();

  /** @param expected hash of the token; `undefined` lets everybody in. */
  constructor(
    private readonly expected: Uint8Array | undefined,
    private readonly now: () => number = () => performance.now(),
  ) {}

  refusalOf({
    headers,
    socket: { remoteAddress = '' },
  }: Pick<IncomingMessage, 'headers'> & {
    readonly socket: Pick<IncomingMessage['socket'], 'remoteAddress'>;
  }): Refusal | undefined {
    if (this.expected === undefined) return undefined;
    const guesses = this.#guessesOf(remoteAddress);
    if (guesses !== undefined && guesses.count >= MAX_WRONG_TOKENS) {
      const seconds = Math.ceil((guesses.until - this.now()) / 1_000);
      const wait = { 'Retry-After': String(seconds) };
      return { status: 429, message: 'too many wrong tokens', headers: wait };
    }
    const [, token] = /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '') ?? [];
    if (token !== undefined) {
      if (timingSafeEqual(hashOf(token), this.expected)) return undefined;
      this.#countGuess(remoteAddress, guesses);
    }
    return {
      status: 401,
      message: 'unauthorized: send the token as Authorization: Bearer …',
      headers: { 'WWW-Authenticate': CHALLENGE },
    };
  }

  #guessesOf(address: string): Guesses | undefined {
    const guesses = this.#guesses.get(address);
    if (guesses === undefined || guesses.until > this.now()) return guesses;
    this.#guesses.delete(address);
    return undefined;
  }

  #countGuess(address: string, guesses: Guesses | undefined): void {
    if (guesses !== undefined) {
      guesses.count += 1;
      return;
    }
    if (this.#guesses.size >= MAX_ADDRESSES) {
      const [oldest] = this.#guesses.keys();
      this.#guesses.delete(oldest!);
    }
    this.#guesses.set(address, { count: 1, until: this.now() + WINDOW_MS });
  }
}

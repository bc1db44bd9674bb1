import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { HubAddress } from '../../contract/snapshot/index.js';

/** An id of Socket.IO with its signature. */
const SIGNED = /^([\w-]{20})\.([\w-]{22})$/;

const SIGNATURE_BYTES = 16;

/**
 * Signs the ids with which clients ask for their sessions, for one namespace each. So a worker can tell
 * that an id was not made in this cluster, and asks no other worker for its session.
 */
export class PrivateIds {
  #secret: string | undefined;
  #asking = false;

  /** @param find finds the hub, whose token all workers know. Without it the secret is this process's own. */
  constructor(private readonly find: (() => Promise<HubAddress>) | undefined) {
    if (find === undefined) this.#secret = randomBytes(32).toString('hex');
    else this.#ask(find);
  }

  /** @returns the same id if it is signed, or if the hub was not found: then its client starts a new session. */
  sign(channel: string, id: string): string {
    if (SIGNED.test(id)) return id;
    const signature = this.#signatureOf(channel, id);
    return signature === undefined ? id : `${id}.${signature.toString('base64url')}`;
  }

  /** @param id text from the client. */
  isOwn(channel: string, id: string): boolean {
    const [, own, signature] = SIGNED.exec(id) ?? [];
    if (own === undefined) return false;
    const expected = this.#signatureOf(channel, own);
    const given = Buffer.from(signature!, 'base64url');
    return expected !== undefined && timingSafeEqual(given, expected);
  }

  #signatureOf(channel: string, id: string): Buffer | undefined {
    if (this.#secret === undefined) return this.#ask(this.find!);
    // The id has no space, so this text is not ambiguous.
    const hmac = createHmac('sha256', this.#secret).update(`socket.io ${id} ${channel}`);
    return hmac.digest().subarray(0, SIGNATURE_BYTES);
  }

  /** Each later use tries again, until the hub was found. */
  #ask(find: () => Promise<HubAddress>): undefined {
    if (this.#asking) return;
    this.#asking = true;
    find()
      .then(({ token }) => void (this.#secret = token))
      .catch(() => {}) // the hub's own client says why there is none
      .finally(() => (this.#asking = false));
  }
}

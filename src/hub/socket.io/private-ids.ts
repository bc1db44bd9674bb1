import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { HubAddress } from '../../contract/snapshot/index.js';

/** The form of a signed id: an id of Socket.IO, a dot, and the signature. */
const SIGNED = /^([\w-]{20})\.([\w-]{22})$/;

const SIGNATURE_BYTES = 16;

/**
 * Signs the ids with which clients ask for their sessions. A signature holds for one namespace. So
 * a worker rejects an id of another cluster without asking other workers.
 */
export class PrivateIds {
  #secret: string | undefined;
  #asking = false;

  /** @param find finds the hub, whose token is the secret. Without `find`, the secret is random. */
  constructor(private readonly find: (() => Promise<HubAddress>) | undefined) {
    if (find === undefined) this.#secret = randomBytes(32).toString('hex');
    else this.#ask(find);
  }

  /** @returns the signed id. Without a secret it is not signed, so it cannot restore a session. */
  sign(channel: string, id: string): string {
    if (SIGNED.test(id)) return id;
    const signature = this.#signatureOf(channel, id);
    return signature === undefined ? id : `${id}.${signature.toString('base64url')}`;
  }

  /** @param id unchecked text from the client. */
  isOwn(channel: string, id: string): boolean {
    const [, own, signature] = SIGNED.exec(id) ?? [];
    if (own === undefined) return false;
    const expected = this.#signatureOf(channel, own);
    const given = Buffer.from(signature!, 'base64url');
    return expected !== undefined && timingSafeEqual(given, expected);
  }

  #signatureOf(channel: string, id: string): Buffer | undefined {
    if (this.#secret === undefined) return this.#ask(this.find!);
    // The id contains no space, so each text belongs to one id and channel.
    const hmac = createHmac('sha256', this.#secret).update(`socket.io ${id} ${channel}`);
    return hmac.digest().subarray(0, SIGNATURE_BYTES);
  }

  /** Asks for the secret. If the hub is not found, the next use of an id asks again. */
  #ask(find: () => Promise<HubAddress>): undefined {
    if (this.#asking) return;
    this.#asking = true;
    find()
      .then(({ token }) => void (this.#secret = token))
      .catch(() => {}) // the hub's client reports the cause
      .finally(() => (this.#asking = false));
  }
}

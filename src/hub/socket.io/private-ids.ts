import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { HubAddress } from '../../contract/snapshot/index.js';

/** The id that Socket.IO makes, and its signature. */
const SIGNED = /^([\w-]{20})\.([\w-]{22})$/;

const SIGNATURE_BYTES = 16;

/**
 * The ids by which clients ask for their sessions. They are signed for one namespace: a worker knows
 * by the form of an id, and asks nobody, that no worker of this cluster has made it.
 */
export class PrivateIds {
  #secret: string | undefined;
  #asking = false;

  /** @param find where the hub is, whose token all workers know; without it the ids are of this process. */
  constructor(private readonly find: (() => Promise<HubAddress>) | undefined) {
    if (find === undefined) this.#secret = randomBytes(32).toString('hex');
    else this.#ask(find);
  }

  /** @returns the same id where it is signed, or where no other worker can be reached: its client begins anew. */
  sign(channel: string, id: string): string {
    if (SIGNED.test(id)) return id;
    const signature = this.#signatureOf(channel, id);
    return signature === undefined ? id : `${id}.${signature.toString('base64url')}`;
  }

  /** @param id whatever the client has sent. */
  isOwn(channel: string, id: string): boolean {
    const [, own, signature] = SIGNED.exec(id) ?? [];
    if (own === undefined) return false;
    const expected = this.#signatureOf(channel, own);
    const given = Buffer.from(signature!, 'base64url');
    return expected !== undefined && timingSafeEqual(given, expected);
  }

  #signatureOf(channel: string, id: string): Buffer | undefined {
    if (this.#secret === undefined) return this.#ask(this.find!);
    // The id has no space.
    const hmac = createHmac('sha256', this.#secret).update(`socket.io ${id} ${channel}`);
    return hmac.digest().subarray(0, SIGNATURE_BYTES);
  }

  /** Until somebody answers: whoever needs it next has it tried again. */
  #ask(find: () => Promise<HubAddress>): undefined {
    if (this.#asking) return;
    this.#asking = true;
    find()
      .then(({ token }) => void (this.#secret = token))
      .catch(() => {}) // the hub's own client says why there is none
      .finally(() => (this.#asking = false));
  }
}

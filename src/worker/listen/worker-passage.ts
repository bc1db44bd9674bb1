import { MAX_PASSED_HEAD_BYTES, type PassedConnection } from '../../contract/ipc/index.js';
import type {
  PassedHandle,
  Passage,
  RelayLimit,
  TakeConnection,
} from '../../contract/snapshot/index.js';
import type { PrimaryChannel } from '../link/primary-channel.js';

/**
 * The maximum number of connections that are being passed at the same time. A further connection is
 * not passed, because each costs the primary work, and a client can ask for upgrades often.
 */
const MAX_PASSING = 8;

/** Passes open connections to other workers through the primary, and takes connections from them. */
export class WorkerPassage implements Passage {
  readonly #takers = new Map<string, TakeConnection>();
  #passing = 0;

  constructor(
    private readonly channel: Pick<PrimaryChannel, 'send' | 'open'>,
    readonly limit?: RelayLimit,
  ) {}

  open(name: string, take: TakeConnection): Promise<void> {
    this.#takers.set(name, take);
    return this.channel.send({ type: 'takes', name });
  }

  pass(to: string, from: string, handle: PassedHandle, head: Buffer): Promise<void> | undefined {
    const fits = head.length <= MAX_PASSED_HEAD_BYTES && this.#passing < MAX_PASSING;
    if (!this.channel.open || !fits) return undefined;
    this.#passing += 1;
    const message = { type: 'pass', to, from, head: head.toString('base64') } as const;
    return this.channel.send(message, handle).finally(() => (this.#passing -= 1));
  }

  /** @param handle `undefined` if this process had no free file descriptor for the connection. */
  taken({ to, head }: PassedConnection, handle: PassedHandle | undefined): void {
    if (handle === undefined) return;
    const take = this.#takers.get(to);
    if (take === undefined) handle.close();
    else take(handle, Buffer.from(head, 'base64'));
  }
}

import { MAX_PASSED_HEAD_BYTES, type PassedConnection } from '../ipc/index.js';
import type { PassedHandle, Passage, TakeConnection } from '../snapshot/index.js';
import type { PrimaryChannel } from './primary-channel.js';

/** A worker's end of the way on which open connections pass to other workers. */
export class WorkerPassage implements Passage {
  readonly #takers = new Map<string, TakeConnection>();

  constructor(private readonly channel: Pick<PrimaryChannel, 'send' | 'open'>) {}

  open(name: string, take: TakeConnection): Promise<void> {
    this.#takers.set(name, take);
    return this.channel.send({ type: 'takes', name });
  }

  pass(to: string, from: string, handle: PassedHandle, head: Buffer): Promise<void> | undefined {
    if (!this.channel.open || head.length > MAX_PASSED_HEAD_BYTES) return undefined;
    return this.channel.send({ type: 'pass', to, from, head: head.toString('base64') }, handle);
  }

  /** @param handle `undefined` where this process had no descriptor for it. */
  taken({ to, head }: PassedConnection, handle: PassedHandle | undefined): void {
    if (handle === undefined) return;
    const take = this.#takers.get(to);
    if (take === undefined) handle.close();
    else take(handle, Buffer.from(head, 'base64'));
  }
}

import type { PrimaryMessage } from '../../contract/ipc/index.js';
import { listen } from './listen.js';
import type { PrimaryChannel } from '../link/primary-channel.js';
import type { HttpApp } from '../life/worker-app.interface.js';

/** The primary's answer to `listen-request`. */
type ListenAnswer = PrimaryMessage & { type: 'listen' | 'listen-refused' };

/** Asks the primary for a socket or an address to listen on. */
export class ListenRequest {
  #settle: ((message: ListenAnswer, handle: unknown) => void) | undefined;

  constructor(private readonly channel: Pick<PrimaryChannel, 'send'>) {}

  answer(message: ListenAnswer, handle: unknown): void {
    this.#settle?.(message, handle);
  }

  /** Makes the app listen on the socket or address from the primary. @returns the app's URL. */
  async listen(app: HttpApp): Promise<string> {
    const granted = new Promise<Parameters<typeof listen>>((resolve, reject) => {
      this.#settle = (message, handle) => {
        if (message.type === 'listen') return resolve([app, message.target, handle]);
        const { message: text, code } = message.error;
        reject(Object.assign(new Error(text), { code }));
      };
    });
    await this.channel.send({ type: 'listen-request' });
    return listen(...(await granted));
  }
}

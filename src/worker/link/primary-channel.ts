import {
  closeHandle,
  isOurs,
  parsePrimaryMessage,
  type PrimaryMessage,
  reportError,
  seal,
  type WorkerMessage,
} from '../../contract/ipc/index.js';

/** Messages that can come with a socket. */
const WITH_HANDLE: ReadonlySet<PrimaryMessage['type'] | undefined> = new Set(['listen', 'adopt']);

/** The worker's end of the IPC channel to its primary. */
export class PrimaryChannel {
  #unsent = 0;

  /** @param listener gets each message of the primary, and the socket that came with it. */
  onMessage(listener: (message: PrimaryMessage, handle: unknown) => void): void {
    process.on('message', (raw, handle) => {
      const message = parsePrimaryMessage(raw);
      const isHeard = isOurs(raw)
        ? WITH_HANDLE.has(message?.type)
        : process.listenerCount('message') > 1;
      if (!isHeard) closeHandle(handle);
      if (message === undefined) return;
      try {
        listener(message, handle);
      } catch (error) {
        // A primary of another version may leave out fields. The error must not end this worker.
        const reason = `could not take '${message.type}' of the primary: ${reportError(error).message}`;
        void this.send({ type: 'warning', message: reason });
      }
    });
  }

  /** Calls `listener` once when the primary is gone or has closed the channel. */
  onClosed(listener: () => void): void {
    // Must run before node:cluster's own listener, because that listener ends the process at once.
    process.prependOnceListener('disconnect', listener);
  }

  /** Whether the kernel has taken all messages that were sent. */
  get drained(): boolean {
    return this.#unsent === 0;
  }

  /** Resolves when the kernel has taken the message or the channel is closed. Never rejects. */
  send(message: WorkerMessage): Promise<void> {
    return new Promise((resolve) => {
      if (!process.connected || process.send === undefined) return resolve();
      this.#unsent += 1;
      process.send(seal(message), undefined, undefined, () => {
        this.#unsent -= 1;
        resolve(); // an error means that the primary is gone, which onClosed() reports
      });
    });
  }
}

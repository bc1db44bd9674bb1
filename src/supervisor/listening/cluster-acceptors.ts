import { subscribe } from 'node:diagnostics_channel';
import type { Server } from 'node:net';
import { AcceptQueue, type ListeningHandle } from '../../contract/process/accept-queue.js';

/** The diagnostics channel of Node 20.16 and 22.3. */
const LISTENING = 'tracing:net.server.listen:asyncEnd';

/** The primary does nothing else that could hold it up, but may be starved on a machine that is busy. */
const PATIENCE_MS = 5_000;

interface Acceptor {
  readonly server: Server & { readonly _handle: unknown };
  readonly handle: ListeningHandle & { close(): void };
}

/**
 * The sockets from which node:cluster accepts in the primary, to hand what
 * comes to the workers: with round-robin, and for each further server of an
 * app. It closes them with the last worker's, and what waits then is reset.
 */
export class ClusterAcceptors {
  #acceptors: Acceptor[] = [];

  constructor() {
    subscribe(LISTENING, (message) => {
      const { server } = message as { readonly server: Acceptor['server'] };
      this.#acceptors = this.#acceptors.filter(isOpen);
      // node:cluster is about to take the handle from its server.
      this.#acceptors.push({ server, handle: server._handle as Acceptor['handle'] });
    });
  }

  /** Accepts what waits, then has the kernel refuse the rest; what was accepted is still handed over. */
  async close(): Promise<void> {
    const signal = AbortSignal.timeout(PATIENCE_MS);
    // Any other server of this process has kept its handle, and is not ours to close.
    const ours = this.#acceptors.filter((each) => isOpen(each) && each.server._handle === null);
    this.#acceptors = [];
    await Promise.all(
      ours.map(({ handle }) => new AcceptQueue(handle).emptyAndClose(signal, () => handle.close())),
    );
  }
}

function isOpen({ handle }: Acceptor): boolean {
  return handle.fd !== undefined && handle.fd >= 0;
}

import { subscribe } from 'node:diagnostics_channel';
import type { Server } from 'node:net';
import { emptyAndClose, type ListeningHandle } from '../../contract/process/accept-queue.js';

/** A diagnostics channel of node:net, since Node 20.16 and 22.3. */
const LISTENING = 'tracing:net.server.listen:asyncEnd';

/** The maximum time to empty the accept queues. Only an overloaded machine needs this long. */
const PATIENCE_MS = 5_000;

interface Acceptor {
  readonly server: Server & { readonly _handle: unknown };
  readonly handle: ListeningHandle & { close(): void };
}

/**
 * The sockets on which node:cluster accepts connections in the primary: with round-robin, and for
 * further servers of an app. node:cluster closes each of them together with the last worker that
 * uses it, and the kernel then resets the connections that wait.
 */
export class ClusterAcceptors {
  #acceptors: Acceptor[] = [];

  constructor() {
    subscribe(LISTENING, (message) => {
      const { server } = message as { readonly server: Acceptor['server'] };
      this.#acceptors = this.#acceptors.filter(isOpen);
      // The handle is read now, because node:cluster is about to remove it from the server.
      this.#acceptors.push({ server, handle: server._handle as Acceptor['handle'] });
    });
  }

  /** Accepts all waiting connections, and hands them to workers. Then closes the sockets. */
  async close(): Promise<void> {
    const signal = AbortSignal.timeout(PATIENCE_MS);
    // Only node:cluster takes the handle from its server. A server that still has its handle is not
    // node:cluster's, and must stay open.
    const ours = this.#acceptors.filter((each) => isOpen(each) && each.server._handle === null);
    this.#acceptors = [];
    await Promise.all(
      ours.map(({ handle }) => emptyAndClose(handle, signal, () => handle.close())),
    );
  }
}

function isOpen({ handle }: Acceptor): boolean {
  return handle.fd !== undefined && handle.fd >= 0;
}

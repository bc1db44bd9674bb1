import type { ServerResponse } from 'node:http';
import type { RequestsPort } from '../../contract/snapshot/index.js';
import type { Watch } from './call.js';

/**
 * Finds the client that waits for the current work, by the asynchronous context. Used only in apps
 * with `@CpuBound()` methods: on Node 20 any use of AsyncLocalStorage lowers the throughput of
 * light requests by up to a sixth.
 */
export class WaitingClient {
  constructor(private readonly link: Pick<RequestsPort, 'followScopes' | 'scope' | 'watchClient'>) {
    link.followScopes(true);
  }

  /** On Node 20 each AsyncLocalStorage in use slows every promise of the process, even after its app is closed. */
  close(): void {
    this.link.followScopes(false);
  }

  /** The response that waits for the current work; `undefined` if the work is not for a request. */
  get current(): ServerResponse | undefined {
    return this.link.scope?.waiting;
  }

  watch(response: ServerResponse): Watch {
    return (gone) => this.link.watchClient(response, gone);
  }
}

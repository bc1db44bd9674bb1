import { AsyncLocalStorage } from 'node:async_hooks';
import type { ServerResponse } from 'node:http';
import type { RequestScope, RequestsPort } from '../../contract/snapshot/index.js';
import type { Watch } from './call.js';

/**
 * The client that waits for the current work, found by its asynchronous context.
 * Only an app with something to offload asks for it: on Node 20 any use of
 * AsyncLocalStorage costs a light request up to a sixth.
 */
export class WaitingClient {
  readonly #scopes = new AsyncLocalStorage<RequestScope>();

  constructor(private readonly link: Pick<RequestsPort, 'followScopes' | 'watchClient'>) {}

  follow(): void {
    this.link.followScopes((scope) => this.#scopes.enterWith(scope));
  }

  /** On Node 20 each storage that is in use costs every promise of the process, also after its app is closed. */
  close(): void {
    this.link.followScopes(undefined);
    this.#scopes.disable();
  }

  /** The response that waits; `undefined` where what runs is not for a request. */
  get current(): ServerResponse | undefined {
    return this.#scopes.getStore()?.waiting;
  }

  watch(response: ServerResponse): Watch {
    return (gone) => this.link.watchClient(response, gone);
  }
}

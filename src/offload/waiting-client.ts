import type { AbstractHttpAdapter } from '@nestjs/core';
import { AsyncLocalStorage } from 'node:async_hooks';
import type { ServerResponse } from 'node:http';
import type { ClusterLink } from '../snapshot/index.js';
import type { Watch } from './call.js';

interface FastifyInstance {
  addHook(
    name: 'preHandler',
    hook: (request: unknown, reply: { readonly raw: ServerResponse }, done: () => void) => void,
  ): void;
}

/**
 * Whose client waits for what is being done: each request runs in a context of
 * its own. Asked for only by an app that has something to offload. It costs a
 * request nothing that could be measured from Node 24 on; on Node 20 any use of
 * AsyncLocalStorage costs up to a sixth.
 */
export class WaitingClient {
  readonly #responses = new AsyncLocalStorage<ServerResponse>();

  constructor(private readonly link: ClusterLink) {}

  follow(adapter: AbstractHttpAdapter | undefined): void {
    this.link.observeRequests((response) => this.#responses.enterWith(response));
    if (adapter?.getType() !== 'fastify') return;
    // Fastify reads bodies in callbacks of the socket, which since Node 24 have a context of their own.
    adapter.getInstance<FastifyInstance>().addHook('preHandler', (_request, reply, done) => {
      this.#responses.run(reply.raw, done);
    });
  }

  /** The response that waits; `undefined` where what runs is not for a request. */
  get current(): ServerResponse | undefined {
    return this.#responses.getStore();
  }

  watch(response: ServerResponse): Watch {
    return (gone) => this.link.watchClient(response, gone);
  }
}

import type { ServerResponse } from 'node:http';
import type { ClusterLink } from '../../contract/snapshot/index.js';
import { TaskRejectedException } from '../offload.exceptions.js';
import { currentTrace } from '../task/trace-context.js';
import type { Submitter, Task, Watch } from './runner.interface.js';

/**
 * Makes calls for the client that waits for the current work, found by the asynchronous context.
 * Used only in apps with `@CpuBound()` methods: on Node 20 any use of AsyncLocalStorage lowers the
 * throughput of light requests by up to a sixth.
 */
export class WaitingClient {
  constructor(private readonly link: Pick<ClusterLink, 'followScopes' | 'scope' | 'watchClient'>) {
    link.followScopes(true);
  }

  /** On Node 20 each AsyncLocalStorage in use slows every promise of the process, even after its app is closed. */
  close(): void {
    this.link.followScopes(false);
  }

  async call(submitter: Submitter, task: Task, args: unknown[]): Promise<unknown> {
    const response = this.link.scope?.waiting;
    try {
      const watch: Watch | undefined =
        response && ((gone) => this.link.watchClient(response, gone));
      return await submitter.submit(task, args, currentTrace(), watch);
    } catch (error) {
      if (error instanceof TaskRejectedException && response !== undefined) {
        adviseRetry(response, error.retryAfterSeconds);
      }
      throw error;
    }
  }
}

/**
 * Makes a 503 response carry `Retry-After`, because an exception of Nest has a status and a body
 * but no headers. If an exception filter answers with another status, the header is not sent.
 */
function adviseRetry(response: ServerResponse, seconds: number): void {
  const writeHead = response.writeHead.bind(response) as (...args: unknown[]) => ServerResponse;
  response.writeHead = (status: number, ...rest: unknown[]): ServerResponse => {
    if (status === 503 && !response.hasHeader('Retry-After')) {
      response.setHeader('Retry-After', String(seconds));
    }
    return writeHead(status, ...rest);
  };
}

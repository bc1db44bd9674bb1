import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { clean, ClusterRefusedError, ClusterUnreachableError } from '../contract/errors/index.js';
import { type FoundCluster, isStopped, labelOf } from './found-cluster.js';

/** A primary that has not answered within this time counts as blocked or stopped. */
const ANSWER_MS = 1_000;

/** Asks one cluster over its control socket. */
export class ControlClient {
  constructor(readonly cluster: FoundCluster) {}

  /** @throws ClusterUnreachableError if no answer comes in time, ClusterRefusedError */
  get<T>(path: string, timeoutMs = ANSWER_MS): Promise<T> {
    return this.#ask('GET', path, { timeoutMs });
  }

  /**
   * Waits for the outcome without a time limit. A primary that is blocked is not asked, because it
   * would make the change later.
   *
   * @throws ClusterUnreachableError, ClusterRefusedError
   */
  async post<T>(path: string, body: object = {}, signal?: AbortSignal): Promise<T> {
    await this.get('/v1/status');
    return this.#ask('POST', path, { body, signal });
  }

  async #ask<T>(
    method: 'GET' | 'POST',
    path: string,
    more: {
      readonly body?: object;
      readonly timeoutMs?: number;
      readonly signal?: AbortSignal | undefined;
    },
  ): Promise<T> {
    const { body, timeoutMs, signal } = more;
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const socketPath = this.cluster.path;
      const asked = request({ socketPath, method, path, agent: false, signal }, resolve);
      if (timeoutMs !== undefined) {
        const silence = () => asked.destroy(new Error(this.#silence(timeoutMs)));
        const timer = setTimeout(silence, timeoutMs);
        for (const sign of ['response', 'close']) asked.once(sign, () => clearTimeout(timer));
      }
      asked.once('error', (error) => reject(this.#unreachable(error)));
      asked.end(body && JSON.stringify(body));
    });
    const answer = await text(response).catch((error: Error) => {
      throw this.#unreachable(error);
    });
    if (response.statusCode !== 200) throw refusal(response, answer);
    return JSON.parse(answer) as T;
  }

  #unreachable(error: NodeJS.ErrnoException): ClusterUnreachableError {
    const { code = '', message } = error;
    return new ClusterUnreachableError(labelOf(this.cluster), clean(MEANING[code] ?? message));
  }

  /** The likely reason why no answer came in time. */
  #silence(ms: number): string {
    return isStopped(this.cluster.pid)
      ? 'its primary is stopped (SIGSTOP, or a debugger); kill -CONT lets it go on'
      : `its primary did not answer within ${ms} ms: it is blocked or stopped`;
  }
}

function refusal({ statusCode }: IncomingMessage, answer: string): Error {
  try {
    const { error } = JSON.parse(answer) as { readonly error: { readonly message: string } };
    return new ClusterRefusedError(clean(String(error.message)));
  } catch {
    return new ClusterRefusedError(`the cluster answered with status ${statusCode}`);
  }
}

const MEANING: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such socket',
  ECONNREFUSED: 'nobody listens there any more',
  EACCES: 'the socket belongs to another user',
  EAGAIN: 'its primary accepts no connection: it is blocked or stopped',
  ECONNRESET: 'it closed the connection: it has ended, or has no descriptors left',
  EPIPE: 'it closed the connection: it has ended, or has no descriptors left',
};

import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import type { Sample, StreamedEvent } from '../../control/event-stream.js';
import {
  clean,
  ClusterRefusedError,
  ClusterUnreachableError,
} from '../../contract/errors/index.js';
import { type FoundCluster, isStopped, labelOf } from './found-cluster.js';
import { parseFrames } from './view/parse-frames.js';

/** A primary that has not answered within this time counts as blocked or stopped. */
const ANSWER_MS = 1_000;

/** The messages of `GET /v1/events`. */
export type Told =
  | { readonly type: 'log'; readonly data: StreamedEvent }
  | { readonly type: 'sample'; readonly data: Sample };

/** Asks one cluster over its control socket. */
export class ControlClient {
  constructor(readonly cluster: FoundCluster) {}

  /** @throws ClusterUnreachableError if no answer comes in time, ClusterRefusedError */
  async get<T>(path: string, timeoutMs?: number): Promise<T> {
    return this.#json(await this.open('GET', path, { timeoutMs }));
  }

  /**
   * Waits for the outcome without a time limit, once the primary has accepted the request.
   *
   * @throws ClusterUnreachableError, ClusterRefusedError
   */
  async post<T>(path: string, body?: object): Promise<T> {
    return this.#json(await this.open('POST', path, { body }));
  }

  /**
   * The stream of events and samples. The primary sends the first sample at once.
   *
   * @throws ClusterUnreachableError, ClusterRefusedError
   */
  async events(signal?: AbortSignal): Promise<AsyncIterable<Told>> {
    const response = await this.open('GET', '/v1/events', { signal });
    return parseFrames(response) as AsyncIterable<Told>;
  }

  /**
   * Sends a request and returns the response, whose body the caller reads. A POST sends its body
   * only after the primary has answered its head with 100 Continue. So if a request to a blocked
   * primary times out, the primary does not make the change later.
   *
   * @throws ClusterUnreachableError if no answer comes in time, ClusterRefusedError
   */
  async open(
    method: 'GET' | 'POST',
    path: string,
    {
      body = {},
      timeoutMs = ANSWER_MS,
      signal,
    }: {
      readonly body?: object | undefined;
      readonly timeoutMs?: number | undefined;
      readonly signal?: AbortSignal | undefined;
    } = {},
  ): Promise<IncomingMessage> {
    const sent = JSON.stringify(body);
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const asked = request(
        {
          socketPath: this.cluster.path,
          method,
          path,
          agent: false,
          headers: {
            Host: 'localhost',
            ...(method === 'POST' && {
              'Content-Type': 'application/json',
              'Content-Length': Buffer.byteLength(sent),
              Expect: '100-continue',
            }),
          },
          ...(signal !== undefined && { signal }),
        },
        resolve,
      );
      const silence = () => asked.destroy(new Error(this.#silence(timeoutMs)));
      const timer = setTimeout(silence, timeoutMs);
      for (const sign of ['continue', 'response', 'close']) {
        asked.once(sign, () => clearTimeout(timer));
      }
      asked.once('error', (error: NodeJS.ErrnoException) =>
        reject(new ClusterUnreachableError(labelOf(this.cluster), inWords(error))),
      );
      if (method === 'GET') asked.end();
      else asked.once('continue', () => asked.end(sent));
    });
    if (response.statusCode === 200) return response;
    throw await refusal(response);
  }

  async #json<T>(response: IncomingMessage): Promise<T> {
    try {
      return JSON.parse(await text(response)) as T;
    } catch (error) {
      throw new ClusterUnreachableError(labelOf(this.cluster), inWords(error as Error));
    }
  }

  /** The likely reason why no answer came in time. */
  #silence(ms: number): string {
    return isStopped(this.cluster.pid)
      ? 'its primary is stopped (SIGSTOP, or a debugger); kill -CONT lets it go on'
      : `its primary did not answer within ${ms} ms: it is blocked or stopped`;
  }
}

async function refusal(response: IncomingMessage): Promise<Error> {
  const answer = await text(response).catch(() => '');
  try {
    const { error } = JSON.parse(answer) as { readonly error: { readonly message: string } };
    return new ClusterRefusedError(clean(String(error.message)));
  } catch {
    return new ClusterRefusedError(`the cluster answered with status ${response.statusCode}`);
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

function inWords({ code = '', message }: NodeJS.ErrnoException): string {
  return clean(MEANING[code] ?? message);
}

import type {
  ReloadAnswer,
  RestartAnswer,
  ScaleAnswer,
  StopAnswer,
} from '../../control/control-api.js';
import { Refusal } from '../../control/route.js';
import { MAX_WORKERS } from '../../contract/options/index.js';
import type { Client } from './cluster-feed.js';

/** How a change ended. */
export interface Outcome {
  readonly done: boolean;
  readonly text: string;
}

type Body = Readonly<Record<string, unknown>>;

/** The actions of the page's buttons, by name. @throws Refusal, and any error of the client */
export const ACTIONS: ReadonlyMap<string, (client: Client, body: Body) => Promise<Outcome>> =
  new Map([
    [
      'reload',
      async (client) => {
        const { outcome, generation, reason } = await client.post<ReloadAnswer>('/v1/reload');
        return outcome === 'completed'
          ? done(`Reloaded: every worker is of generation ${generation}.`)
          : failed(`The reload was ${outcome}, the release before it serves: ${reason}`);
      },
    ],
    [
      'scale',
      async (client, body) => {
        const wanted = wholeNumber(body, 'workers', 1, MAX_WORKERS);
        const answer = await client.post<ScaleAnswer>('/v1/scale', { workers: wanted });
        const { from, workers, ready } = answer;
        const text = `Scaled from ${from} to ${workers}: ${ready} of ${workers} are ready.`;
        return ready < workers ? failed(text) : done(text);
      },
    ],
    [
      'restart',
      async (client, body) => {
        const slot = wholeNumber(body, 'slot', 0, MAX_WORKERS - 1);
        const path = `/v1/workers/${slot}/restart`;
        const { outcome, reason } = await client.post<RestartAnswer>(path);
        return outcome === 'completed'
          ? done(`Worker ${slot} was replaced by a new one.`)
          : failed(`The restart of worker ${slot} was aborted: ${reason}`);
      },
    ],
    [
      'stop',
      async (client) => {
        const { exitCode } = await client.post<StopAnswer>('/v1/stop');
        return done(`The cluster has stopped (exit code ${exitCode}).`);
      },
    ],
  ]);

function done(text: string): Outcome {
  return { done: true, text };
}

function failed(text: string): Outcome {
  return { done: false, text };
}

function wholeNumber(body: Body, name: string, min: number, max: number): number {
  const value = Object.hasOwn(body, name) ? body[name] : undefined;
  if (Number.isInteger(value) && (value as number) >= min && (value as number) <= max) {
    return value as number;
  }
  throw new Refusal(400, 'BAD_REQUEST', `${name}: expected a whole number from ${min} to ${max}`);
}

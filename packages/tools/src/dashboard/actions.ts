import { collect } from '../advise/collect.js';
import { adviceOf } from '../advise/report.js';
import type { ControlClient } from '../cluster.js';
import { Refusal } from './guard.js';

/** How a change of the cluster ended. */
interface Changed {
  readonly done: boolean;
  /** The outcome in one line. */
  readonly text: string;
  readonly answer: object;
}

type Body = Readonly<Record<string, unknown>>;
type Action = (client: ControlClient, body: Body) => Promise<Changed>;

interface Outcome {
  readonly outcome: string;
  readonly reason: string | null;
}

const MAX_WORKERS = 256;

/** The length of the profile that the page asks for, in seconds. */
const ADVISE_S = 20;

/** The actions of the page's buttons, by name. They throw Refusal or ToolError. */
export const ACTIONS: ReadonlyMap<string, Action> = new Map<string, Action>([
  ['reload', async (client) => ended('reload', await client.post<Outcome>('/v1/reload'))],
  [
    'restart',
    async (client, body) => {
      const slot = wholeNumber(body, 'slot', 0, MAX_WORKERS - 1);
      const what = `restart of worker ${slot}`;
      return ended(what, await client.post<Outcome>(`/v1/workers/${slot}/restart`));
    },
  ],
  [
    'scale',
    async (client, body) => {
      const workers = wholeNumber(body, 'workers', 1, MAX_WORKERS);
      const answer = await client.post<{ readonly ready: number }>('/v1/scale', { workers });
      const done = answer.ready >= workers;
      const missing = done ? '' : `, ${answer.ready} ready: the log of the cluster says why`;
      return { answer, done, text: `scaled to ${workers} workers${missing}` };
    },
  ],
  [
    'stop',
    async (client) => {
      const answer = await client.post<{ readonly exitCode: number }>('/v1/stop');
      return {
        answer,
        done: answer.exitCode === 0,
        text: `stopped with exit code ${answer.exitCode}`,
      };
    },
  ],
  [
    'advise',
    async (client) => {
      const answer = adviceOf(await collect(client, ADVISE_S));
      const { functions, nothing } = answer;
      const text = nothing ?? `functions that block: ${functions.length}`;
      return { answer, done: true, text };
    },
  ],
]);

function ended(what: string, answer: Outcome): Changed {
  const { outcome, reason } = answer;
  const why = reason === null ? '' : `: ${reason}`;
  return { answer, done: outcome === 'completed', text: `${what} ${outcome}${why}` };
}

function wholeNumber(body: Body, name: string, min: number, max: number): number {
  const value = Object.hasOwn(body, name) ? body[name] : undefined;
  if (Number.isInteger(value) && (value as number) >= min && (value as number) <= max) {
    return value as number;
  }
  throw new Refusal(400, 'BAD_REQUEST', `${name}: expected a whole number from ${min} to ${max}`);
}

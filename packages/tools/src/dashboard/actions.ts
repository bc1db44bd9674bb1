import { collect } from '../advise/collect.js';
import { adviceOf } from '../advise/report.js';
import type { ControlClient } from '../cluster.js';

/** How a change to the cluster ended. */
interface Changed {
  readonly done: boolean;
  /** The outcome in one line. */
  readonly text: string;
  readonly answer: object;
}

type Action = (client: ControlClient, body: Readonly<Record<string, unknown>>) => Promise<Changed>;

interface Outcome {
  readonly outcome: string;
  readonly reason: string | null;
}

/** The length of the profile for the page's advice, in seconds. */
const ADVISE_S = 20;

/** The actions of the page's buttons, by name. The cluster checks the values. @throws ToolError */
export const ACTIONS: ReadonlyMap<string, Action> = new Map<string, Action>([
  ['reload', async (client) => ended('reload', await client.post<Outcome>('/v1/reload'))],
  [
    'restart',
    async (client, body) => {
      const slot = Number(body['slot']);
      const path = `/v1/workers/${slot}/restart`;
      return ended(`restart of worker ${slot}`, await client.post<Outcome>(path));
    },
  ],
  [
    'scale',
    async (client, { workers }) => {
      const answer = await client.post<{ readonly ready: number }>('/v1/scale', { workers });
      const count = Number(workers);
      const done = answer.ready >= count;
      const missing = done
        ? ''
        : `, but not all are ready (${answer.ready} of ${count}); see the cluster's log`;
      return { answer, done, text: `scaled to ${count} worker${count === 1 ? '' : 's'}${missing}` };
    },
  ],
  [
    'stop',
    async (client) => {
      const answer = await client.post<{ readonly exitCode: number }>('/v1/stop');
      const { exitCode } = answer;
      return { answer, done: exitCode === 0, text: `stopped with exit code ${exitCode}` };
    },
  ],
  [
    'advise',
    async (client) => {
      const answer = adviceOf(await collect(client, ADVISE_S));
      const { functions, nothing } = answer;
      const text = nothing ?? `blocking functions: ${functions.length}`;
      return { answer, done: true, text };
    },
  ],
]);

function ended(what: string, answer: Outcome): Changed {
  const { outcome, reason } = answer;
  const why = reason === null ? '' : `: ${reason}`;
  return { answer, done: outcome === 'completed', text: `${what} ${outcome}${why}` };
}

import { MAX_WORKERS } from '../../contract/options/index.js';
import { Refusal } from '../../control/route.js';
import { collect } from '../advise/collect.js';
import { adviceOf } from '../advise/report.js';
import { type Changed, reload, restart, scale, stop } from '../control/changes.js';
import type { Client } from './cluster-feed.js';

type Body = Readonly<Record<string, unknown>>;

/** The actions of the page's buttons, by name. They throw Refusal or an error of the client. */
export const ACTIONS: ReadonlyMap<string, (client: Client, body: Body) => Promise<Changed>> =
  new Map([
    ['reload', reload],
    [
      'scale',
      (client: Client, body: Body) => scale(client, wholeNumber(body, 'workers', 1, MAX_WORKERS)),
    ],
    [
      'restart',
      (client: Client, body: Body) =>
        restart(client, wholeNumber(body, 'slot', 0, MAX_WORKERS - 1)),
    ],
    ['stop', stop],
    ['advise', advise],
  ]);

/** The length of the profile that the page asks for, in seconds. */
const ADVISE_S = 20;

async function advise(client: Client): Promise<Changed> {
  const answer = adviceOf(await collect(client, ADVISE_S));
  const { methods, nothing } = answer;
  const text =
    nothing === null ? `methods that block: ${methods.length}` : `nothing to gain: ${nothing}`;
  return { answer, done: true, text };
}

function wholeNumber(body: Body, name: string, min: number, max: number): number {
  const value = Object.hasOwn(body, name) ? body[name] : undefined;
  if (Number.isInteger(value) && (value as number) >= min && (value as number) <= max) {
    return value as number;
  }
  throw new Refusal(400, 'BAD_REQUEST', `${name}: expected a whole number from ${min} to ${max}`);
}

import type {
  ReloadAnswer,
  RestartAnswer,
  ScaleAnswer,
  StopAnswer,
} from '../control/control-api.js';
import type { ControlClient } from './control-client.js';

/** How a change of a cluster ended. */
export interface Changed {
  /** The answer of the control socket. */
  readonly answer: object;
  readonly done: boolean;
  /** The outcome in one line of text. */
  readonly text: string;
}

type Client = Pick<ControlClient, 'post'>;

export async function reload(client: Client): Promise<Changed> {
  const answer = await client.post<ReloadAnswer>('/v1/reload');
  const { outcome, generation, reason } = answer;
  const done = outcome === 'completed';
  const why = done ? '' : `, the release before it serves: ${reason}`;
  return { answer, done, text: `reload gen=${generation} ${outcome}${why}` };
}

/** @param force also starts more workers than the machine has use for. */
export async function scale(client: Client, wanted: number, force = false): Promise<Changed> {
  const body = { workers: wanted, ...(force && { force }) };
  const answer = await client.post<ScaleAnswer>('/v1/scale', body);
  const { from, workers, ready } = answer;
  const done = ready >= workers;
  const missing = done ? '' : `, of which ${ready} are ready: the log of the cluster says why`;
  return { answer, done, text: `scaled from ${from} to ${workers} workers${missing}` };
}

export async function restart(client: Client, slot: number): Promise<Changed> {
  const answer = await client.post<RestartAnswer>(`/v1/workers/${slot}/restart`);
  const done = answer.outcome === 'completed';
  const text = done
    ? `worker ${slot} restarted`
    : `worker ${slot} was not restarted: ${answer.reason}`;
  return { answer, done, text };
}

export async function stop(client: Client): Promise<Changed> {
  const answer = await client.post<StopAnswer>('/v1/stop');
  const done = answer.exitCode === 0;
  const text = done
    ? 'stopped'
    : `stopped with exit code ${answer.exitCode}: the log of the cluster says why`;
  return { answer, done, text };
}

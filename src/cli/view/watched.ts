import type { ClusterReport, ClusterStatus } from '../../control/cluster-status.js';
import type { ControlClient } from '../control-client.js';
import { printLine } from './output.js';

export const SILENCE = 'the primary does not answer: it is blocked or stopped';

export const POLL_MS = 1_000;

/**
 * Makes a request that may take long. Until the answer, asks for the status once a second. Prints a
 * line when the states of the workers have changed, and warns if the primary stops answering.
 *
 * @param shows whether to print the lines.
 */
export async function watched<T>(
  client: Pick<ControlClient, 'get'>,
  shows: boolean,
  ask: () => Promise<T>,
): Promise<T> {
  let last: string | undefined;
  const poll = async (): Promise<void> => {
    const line = await client.get<ClusterStatus>('/v1/status').then(progressOf, () => SILENCE);
    // After the outcome there is nothing more to print.
    if (line === last || timer === undefined) return;
    last = line;
    if (line === SILENCE) process.stderr.write(`${SILENCE}; waiting for it\n`);
    else if (shows) printLine(line);
  };
  let timer: NodeJS.Timeout | undefined = setInterval(() => void poll(), POLL_MS);
  try {
    return await ask();
  } finally {
    clearInterval(timer);
    timer = undefined;
  }
}

/** The number of workers in each state, and how many of the ready workers are of the newest generation. */
function progressOf({ cluster: { workers, generation } }: ClusterStatus): string {
  const states = new Map<string, number>();
  for (const { state } of workers) states.set(state, (states.get(state) ?? 0) + 1);
  const isNewest = (each: ClusterReport['workers'][number]) =>
    each.state === 'ready' && each.generation === generation;
  const newest = ` (${workers.filter(isNewest).length} of generation ${generation})`;
  const counts = [...states].map(
    ([state, count]) => `${count} ${state}${state === 'ready' ? newest : ''}`,
  );
  return `workers: ${counts.join(', ')}`;
}

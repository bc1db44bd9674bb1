import type { ClusterEvent } from '../decide/cluster-event.js';
import type { Effect } from '../decide/effect.js';
import type { Listening } from './listening.interface.js';

/** Sees to it that there is something to listen on for as many slots. @returns what came of it. */
export function reserve(
  listening: Pick<Listening, 'reserve'>,
  { workers, reason, asker }: Effect & { readonly type: 'reserve' },
): ClusterEvent {
  let error: Error | undefined;
  try {
    listening.reserve(workers);
  } catch (thrown) {
    error = thrown as Error;
  }
  return { type: 'reserved', workers, reason, asker, error };
}

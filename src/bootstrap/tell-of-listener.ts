import type { ClusterEventName, EmitEvent } from '../contract/events/index.js';
import { reportError } from '../contract/ipc/index.js';

/** Has a line for what a listener throws: in the log alone, since a listener may listen to warnings. */
export function tellOfListener(log: EmitEvent): (name: ClusterEventName, error: unknown) => void {
  return (name, error) =>
    log('warning', { message: `a listener of '${name}' threw`, error: reportError(error) });
}

import type { ClusterEventName, EmitEvent } from '../contract/events/index.js';
import { reportError } from '../contract/errors/error-report.js';

/** Logs the error of a listener. Emits no event, because a listener of that event might throw again. */
export function tellOfListener(log: EmitEvent): (name: ClusterEventName, error: unknown) => void {
  return (name, error) =>
    log('warning', { message: `a listener of '${name}' threw`, error: reportError(error) });
}

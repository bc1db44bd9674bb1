import * as v from 'valibot';
import type { ClusterEventListeners, ClusterEventName } from '../log/events.js';
import { oneOf, optionGroup, validate } from './check/validate.js';

const listener = v.optional(v.function('a function that takes the event'));

// All events are listed, so that the compiler finds a missing event.
const LISTENERS: Record<ClusterEventName, typeof listener> = {
  starting: listener,
  listening: listener,
  started: listener,
  'worker-ready': listener,
  'worker-died': listener,
  'worker-failing': listener,
  'worker-restarting': listener,
  'worker-replacing': listener,
  'worker-draining': listener,
  'worker-stopped': listener,
  'worker-exit': listener,
  leader: listener,
  'reload-started': listener,
  'reload-reverting': listener,
  'reload-ended': listener,
  scaling: listener,
  stopping: listener,
  stopped: listener,
  failed: listener,
  warning: listener,
};

export const eventListenersSchema = optionGroup(LISTENERS) as v.GenericSchema<
  unknown,
  ClusterEventListeners
>;

const eventNameSchema = oneOf(Object.keys(LISTENERS));

/** @throws ClusterConfigurationError if no event has that name. */
export function checkEventName(name: unknown): ClusterEventName {
  return validate(eventNameSchema, name, 'name of an event') as ClusterEventName;
}

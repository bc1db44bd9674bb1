import * as v from 'valibot';
import { EVENT_NAMES } from '../log/lines.js';
import type { ClusterEventListeners, ClusterEventName } from '../log/events.js';
import { oneOf, optionGroup, validate } from './schema.js';

const listener = v.optional(v.function('a function that takes the event'));

/** The option `on`. */
export const listeners = optionGroup(
  Object.fromEntries(EVENT_NAMES.map((name) => [name, listener])),
) as v.GenericSchema<never, ClusterEventListeners>;

const eventName = oneOf(EVENT_NAMES);

/** @throws ClusterConfigurationError if no event has that name. */
export function checkEventName(name: unknown): ClusterEventName {
  return validate(eventName, name, 'name of an event');
}

export type {
  ClusterEventListeners,
  ClusterEventName,
  ClusterEventMap,
  EmitEvent,
} from './event-map.js';
export { describeEvent, lossOf, UNLOGGED } from './describe-event.js';
export { EventListeners } from './event-listeners.js';
export { createEventFormat, createEventLog } from './event-log.js';
export { FirstStart } from './first-start.js';
export { quietLog } from './quiet-log.js';
export { workerExitIn } from './worker-exit.js';

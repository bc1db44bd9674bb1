export type { ClusterEventName, ClusterEvents, EmitEvent } from './cluster-events.js';
export { createEventFormat, createEventLog } from './event-log.js';
export { FirstStart } from './first-start.js';
export { quietLog } from './quiet-log.js';

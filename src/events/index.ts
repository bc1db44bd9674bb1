export type { ClusterEventName, ClusterEvents, EmitEvent } from './cluster-events.js';
export { createEventFormat, createEventLog } from './event-log.js';

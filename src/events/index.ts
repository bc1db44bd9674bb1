export type { ClusterEventName, ClusterEvents, EmitEvent } from './cluster-events.js';
export { createEventLog, formatEvent } from './event-log.js';

export type { ClusterEventName, ClusterEvents, EmitEvent } from './cluster-events.js';
export { createEventLog } from './event-log.js';

export { ClusterEvents, type ClusterRequestOptions } from './cluster-events.js';
export type { EventReceivers } from './check-event.js';
export { ClusterPubSub } from './cluster-pub-sub.js';
export { ClusterRequestError } from './events.errors.js';

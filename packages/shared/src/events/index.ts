export { ClusterRequestError, ClusterSharedError } from '../errors.js';
export {
  ClusterEvents,
  type ClusterRequestOptions,
  type EventReceivers,
} from './cluster-events.js';
export { ClusterPubSub } from './cluster-pub-sub.js';

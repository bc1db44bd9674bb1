export {
  ClusterEvents,
  type ClusterRequestOptions,
  type EventReceivers,
} from './cluster-events.js';
export { ClusterPubSub } from '../pub-sub/index.js';
export { ClusterRequestError } from './events.errors.js';

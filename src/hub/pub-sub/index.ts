export { ClusterPubSub } from './cluster-pub-sub.js';

export { ClusterIoAdapter } from './cluster-io-adapter.js';

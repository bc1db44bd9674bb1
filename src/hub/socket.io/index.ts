export { ClusterIoAdapter, type ClusterIoAdapterOptions } from './cluster-io-adapter.js';

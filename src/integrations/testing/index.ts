export { ClusterTestingModule } from './cluster-testing.module.js';
export type { FakeCluster } from './testing-link.js';

export { ClusterScheduleModule } from './cluster-schedule.module.js';
export { EveryWorker } from './every-worker.decorator.js';

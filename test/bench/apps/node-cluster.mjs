// The plain app on node:cluster, as articles have it: a worker that ends is forked again.
//
// WORKERS
// SCHEDULING   round-robin, or shared: all workers accept from one socket
import cluster from 'node:cluster';

if (cluster.isPrimary) {
  cluster.schedulingPolicy =
    process.env.SCHEDULING === 'shared' ? cluster.SCHED_NONE : cluster.SCHED_RR;
  cluster.on('exit', () => cluster.fork());
  cluster.on('listening', ({ process: { pid } }) => console.log(`worker ${pid} listening`));
  for (let k = 0; k < Number(process.env.WORKERS); k += 1) cluster.fork();
} else {
  await import('./plain.mjs');
}

// The plain app on node:cluster with a careful primary: it forks again what has ended, and at SIGHUP
// it replaces one worker after the other. A worker drains only once the next one listens.
//
// WORKERS
// SCHEDULING   round-robin, or shared: all workers accept from one socket
import cluster from 'node:cluster';
import { once } from 'node:events';

if (cluster.isPrimary) {
  cluster.schedulingPolicy =
    process.env.SCHEDULING === 'shared' ? cluster.SCHED_NONE : cluster.SCHED_RR;
  const replaced = new Set();
  cluster.on('exit', (worker) => replaced.has(worker) || cluster.fork());
  const reload = async () => {
    for (const worker of Object.values(cluster.workers)) {
      await once(cluster.fork(), 'listening');
      replaced.add(worker);
      worker.process.kill('SIGTERM');
      await once(worker, 'exit');
    }
    console.log('reloaded');
  };
  process.on('SIGHUP', () => void reload());
  cluster.on('listening', ({ process: { pid } }) => console.log(`worker ${pid} listening`));
  for (let k = 0; k < Number(process.env.WORKERS); k += 1) cluster.fork();
} else {
  await import('./plain.mjs');
}

import { setTimeout as delay } from 'node:timers/promises';
import { signal } from '../process-table.mjs';

/** With what a worker holds before, 80 MB at least: above the one limit of cluster.mjs, or above both. */
const MEGABYTES = { soft: 330, hard: 650 };

/** What is done to one worker. Each has `parameters`, that a seed decides, and `inject`. */
export const WORKER_FAULTS = [
  {
    name: 'kill',
    parameters: (random) => ({ share: random.ratio(), workers: random.of([1, 1, 1, 2]) }),
    /** At once, two now and then. */
    async inject(run, { share, workers }) {
      const victims = run.pickWorkers(share, workers);
      for (const pid of victims) run.doom(pid, 'kill');
      for (const pid of victims) signal(pid, 'SIGKILL');
      await run.died(victims);
    },
  },
  {
    name: 'stop',
    parameters: (random) => ({ share: random.ratio(), heals: random.of([false, false, true]) }),
    /** It hangs until the primary ends it; or goes on before that, and has lost nothing. */
    async inject(run, { share, heals }) {
      const [pid] = run.pickWorkers(share, 1);
      if (!heals) run.doom(pid, 'stop');
      signal(pid, 'SIGSTOP');
      run.undoLater(() => signal(pid, 'SIGCONT'));
      if (!heals) return run.died([pid]);
      await delay(1_000);
      signal(pid, 'SIGCONT');
    },
  },
  {
    name: 'exit',
    parameters: (random) => ({ how: random.of(['exit', 'abort', 'throw']) }),
    /** An uncaught error makes it drain: nothing is lost by that. */
    async inject(run, { how }) {
      const victim = await run.meetWorker();
      if (how === 'throw') run.expect(victim.pid);
      else run.doom(victim.pid, 'exit');
      await victim.ask(run.fault('end', how));
      await run.died([victim.pid]);
    },
  },
  {
    name: 'spin',
    parameters: () => ({}),
    async inject(run) {
      const victim = await run.meetWorker();
      run.doom(victim.pid, 'spin');
      victim.ask(run.fault('spin')).catch(() => {}); // reset, when it is killed
      await run.died([victim.pid]);
    },
  },
  {
    name: 'leak',
    parameters: (random) => ({ limit: random.of(['soft', 'hard']) }),
    /** Above the soft limit it is replaced, and loses nothing; above the hard one it is killed. */
    async inject(run, { limit }) {
      const victim = await run.meetWorker();
      if (limit === 'hard') run.doom(victim.pid, 'leak');
      // It may be killed before it has answered.
      const asked = victim.ask(run.fault('leak', MEGABYTES[limit]));
      await (limit === 'hard' ? asked.catch(() => {}) : asked);
      await run.died([victim.pid]);
    },
  },
];

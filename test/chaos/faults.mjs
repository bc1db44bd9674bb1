import { setTimeout as delay } from 'node:timers/promises';
import { signal } from '../bench/process-table.mjs';
import { BROKEN } from './releases.mjs';

/** With what a worker holds before, 80 MB at least: above the one limit of cluster.mjs, or above both. */
const MEGABYTES = { soft: 330, hard: 650 };

/**
 * Every kind of fault. A seed decides its `parameters`. Each is undone, and recovered from, before
 * the next. A full disk, silent connections, a lack of descriptors, a jump of the clock, a fatal request
 * and a removed release have tests of their own.
 */
export const FAULTS = [
  {
    name: 'kill',
    parameters: (random) => ({ share: random.ratio(), workers: random.of([1, 1, 1, 2]) }),
    async inject(run, { share, workers }) {
      const victims = run.pickWorkers(share, workers);
      for (const pid of victims) run.cluster.allowLoss(pid, 'kill');
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
      if (!heals) run.cluster.allowLoss(pid, 'stop');
      signal(pid, 'SIGSTOP');
      run.undoLater(() => signal(pid, 'SIGCONT'));
      if (!heals) return run.died([pid]);
      await delay(1_000);
      run.undoNow();
    },
  },
  {
    name: 'exit',
    parameters: (random) => ({ how: random.of(['exit', 'abort', 'throw']) }),
    /** An uncaught error makes it drain: nothing is lost by that. */
    async inject(run, { how }) {
      const victim = await run.meetWorker();
      if (how === 'throw') run.expect(victim.pid);
      else run.cluster.allowLoss(victim.pid, 'exit');
      await victim.ask(`/faults/${how}`);
      await run.died([victim.pid]);
    },
  },
  {
    name: 'spin',
    parameters: () => ({}),
    async inject(run) {
      const victim = await run.meetWorker();
      run.cluster.allowLoss(victim.pid, 'spin');
      victim.ask('/faults/spin').catch(() => {}); // reset, when it is killed
      await run.died([victim.pid]);
    },
  },
  {
    name: 'leak',
    parameters: (random) => ({ limit: random.of(['soft', 'hard']) }),
    /** Above the soft limit it is replaced, and loses nothing; above the hard one it is killed. */
    async inject(run, { limit }) {
      const victim = await run.meetWorker();
      if (limit === 'hard') run.cluster.allowLoss(victim.pid, 'leak');
      // It may be killed before it has answered.
      const asked = victim.ask(`/faults/leak/${MEGABYTES[limit]}`);
      await (limit === 'hard' ? asked.catch(() => {}) : asked);
      await run.died([victim.pid]);
    },
  },
  {
    name: 'reload',
    parameters: () => ({}),
    /** The release before is deleted, as deploys do. */
    async inject(run) {
      const { generation } = await run.report();
      const before = run.releases.deploy('good');
      run.cluster.signal('SIGHUP');
      await run.until('the reload', (report) => report.generation > generation && report.settled);
      run.releases.remove(before);
    },
  },
  {
    name: 'broken',
    parameters: (random) => ({ source: random.of(BROKEN) }),
    /** A reload of a broken release costs nothing: the workers before stay. */
    async inject(run, { source }) {
      const aborted = () => run.counter('nestjs_cluster_reloads_total{outcome="aborted"}');
      const before = await aborted();
      const workers = run.cluster.workerPids;
      const good = run.releases.deploy(source);
      run.cluster.signal('SIGHUP');
      await run.eventually('the reload is aborted', async () => (await aborted()) > before);
      run.releases.remove(run.releases.restore(good));
      run.expectNewcomersDead(workers);
      const gone = workers.filter((pid) => !run.cluster.workerPids.includes(pid));
      if (gone.length > 0) run.failed(`a broken release (${source}) cost the workers ${gone}`);
    },
  },
  {
    name: 'scale',
    parameters: (random) => ({ by: random.of([1, -1]) }),
    async inject(run, { by }) {
      const { desired } = await run.report();
      const scale = (step) => run.cluster.signal(step > 0 ? 'SIGTTIN' : 'SIGTTOU');
      const reached = (workers) => (report) => report.desired === workers && report.settled;
      scale(by);
      run.undoLater(() => scale(-by));
      await run.until('the scaling', reached(desired + by));
      run.undoNow();
      await run.until('the scaling back', reached(desired));
    },
  },
  {
    name: 'primary',
    parameters: (random) => ({ forMs: random.between(500, 3_000) }),
    inject: (run, { forMs }) => freeze(run, [run.cluster.pid], forMs),
  },
  {
    name: 'group',
    parameters: (random) => ({ forMs: random.between(1_000, 7_000) }),
    /** As a suspended machine, or a shell's Ctrl-Z: longer than a worker may hang, or not. */
    inject: (run, { forMs }) => freeze(run, [run.cluster.pid, ...run.cluster.workerPids], forMs),
  },
];

/** Stops processes for a time. @returns when they were stopped, `{ from, to }`. */
async function freeze(run, pids, forMs) {
  const from = Date.now();
  for (const pid of pids) signal(pid, 'SIGSTOP');
  run.undoLater(() => pids.toReversed().forEach((pid) => signal(pid, 'SIGCONT')));
  await delay(forMs);
  run.undoNow();
  return { from, to: Date.now() };
}
